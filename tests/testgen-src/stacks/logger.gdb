[Thread debugging using libthread_db enabled]
Using host libthread_db library "/lib/x86_64-linux-gnu/libthread_db.so.1".
[New Thread 0x7ffff7da96c0 (LWP 13209)]
[New Thread 0x7ffff75a86c0 (LWP 13210)]

Thread 2 "field-logger" received signal SIGSEGV, Segmentation fault.
[Switching to Thread 0x7ffff7da96c0 (LWP 13209)]
0x00007ffff7fbc1ef in is_loggable (f=0x0, level=2) at /home/user/src/tests/testgen-src/logger.c:44
warning: Source file is more recent than executable.
44		return level >= f->level;
#0  0x00007ffff7fbc1ef in is_loggable (f=0x0, level=2) at /home/user/src/tests/testgen-src/logger.c:44
#1  0x00007ffff7fbc239 in log_record (l=0x5555555592a0, level=2) at /home/user/src/tests/testgen-src/logger.c:50
#2  0x00007ffff7fbc28c in logger_info (l=0x5555555592a0, text=0x555555556004 "hello") at /home/user/src/tests/testgen-src/logger.c:58
#3  0x000055555555523a in one () at /home/user/src/tests/testgen-src/field/field.cc:19
#4  run<one> () at /home/user/src/tests/testgen-src/field/field.cc:107
#5  0x00007ffff7e561f5 in start_thread (arg=<optimized out>) at ./nptl/pthread_create.c:442
#6  0x00007ffff7ed68ec in clone3 () at ../sysdeps/unix/sysv/linux/x86_64/clone3.S:81
