CFLAGS_cow-map := -O2
