CFLAGS_id-pool := -O0
