CFLAGS_closing := -O2
