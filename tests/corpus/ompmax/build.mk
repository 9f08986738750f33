CFLAGS_ompmax := -fopenmp
