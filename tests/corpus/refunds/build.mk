CFLAGS_refunds := -O0
