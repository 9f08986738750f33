CFLAGS_parse-status := -O2
