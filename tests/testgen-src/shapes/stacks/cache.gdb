[Thread debugging using libthread_db enabled]
Using host libthread_db library "/lib/x86_64-linux-gnu/libthread_db.so.1".
[New Thread 0x7ffff7da96c0 (LWP 17194)]
[New Thread 0x7ffff75a86c0 (LWP 17199)]
[New Thread 0x7ffff6da76c0 (LWP 17200)]

Thread 2 "app-cache" received signal SIGSEGV, Segmentation fault.
[Switching to Thread 0x7ffff7da96c0 (LWP 17194)]
cache_read (c=0x55555555a320, key=1, value=0x7ffff7da8ec8) at shapes/cache.c:77
warning: Source file is more recent than executable.
77		*value = *e->payload;
#0  cache_read (c=0x55555555a320, key=1, value=0x7ffff7da8ec8) at shapes/cache.c:77
#1  0x0000555555555260 in a (x=0x0) at app.c:20
#2  0x00007ffff7e561f5 in start_thread (arg=<optimized out>) at ./nptl/pthread_create.c:442
#3  0x00007ffff7ed68ec in clone3 () at ../sysdeps/unix/sysv/linux/x86_64/clone3.S:81
