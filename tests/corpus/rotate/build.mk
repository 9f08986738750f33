CFLAGS_rotate := -O0
