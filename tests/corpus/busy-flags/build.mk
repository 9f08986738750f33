CFLAGS_busy-flags := -O0
