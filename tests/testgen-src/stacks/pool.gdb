[Thread debugging using libthread_db enabled]
Using host libthread_db library "/lib/x86_64-linux-gnu/libthread_db.so.1".
[New Thread 0x7ffff7da96c0 (LWP 9010)]
[New Thread 0x7ffff75a86c0 (LWP 9011)]

Thread 1 "field-pool" received signal SIGQUIT, Quit.
0x00007ffff7e09267 in __GI_kill () at ../sysdeps/unix/syscall-template.S:120
120	../sysdeps/unix/syscall-template.S: No such file or directory.

Thread 3 (Thread 0x7ffff75a86c0 (LWP 9011) "field-pool"):
#0  futex_wait (private=0, expected=2, futex_word=0x5555555592e0) at ../sysdeps/nptl/futex-internal.h:146
#1  __GI___lll_lock_wait (futex=futex@entry=0x5555555592e0, private=0) at ./nptl/lowlevellock.c:49
#2  0x00007ffff7e59482 in lll_mutex_lock_optimized (mutex=0x5555555592e0) at ./nptl/pthread_mutex_lock.c:48
#3  ___pthread_mutex_lock (mutex=0x5555555592e0) at ./nptl/pthread_mutex_lock.c:93
#4  0x00007ffff7fbc22f in pool_shutdown (p=0x5555555592a0) at /home/user/src/tests/testgen-src/pool.c:40
#5  0x00005555555551f9 in two () at /home/user/src/tests/testgen-src/field/field.cc:92
#6  run<two> () at /home/user/src/tests/testgen-src/field/field.cc:107
#7  0x00007ffff7e561f5 in start_thread (arg=<optimized out>) at ./nptl/pthread_create.c:442
#8  0x00007ffff7ed68ec in clone3 () at ../sysdeps/unix/sysv/linux/x86_64/clone3.S:81

Thread 2 (Thread 0x7ffff7da96c0 (LWP 9010) "field-pool"):
#0  futex_wait (private=0, expected=2, futex_word=0x5555555592a0) at ../sysdeps/nptl/futex-internal.h:146
#1  __GI___lll_lock_wait (futex=futex@entry=0x5555555592a0, private=0) at ./nptl/lowlevellock.c:49
#2  0x00007ffff7e59482 in lll_mutex_lock_optimized (mutex=0x5555555592a0) at ./nptl/pthread_mutex_lock.c:48
#3  ___pthread_mutex_lock (mutex=0x5555555592a0) at ./nptl/pthread_mutex_lock.c:93
#4  0x00007ffff7fbc2a0 in pool_add (p=0x5555555592a0) at /home/user/src/tests/testgen-src/pool.c:54
#5  0x000055555555521d in one () at /home/user/src/tests/testgen-src/field/field.cc:91
#6  run<one> () at /home/user/src/tests/testgen-src/field/field.cc:107
#7  0x00007ffff7e561f5 in start_thread (arg=<optimized out>) at ./nptl/pthread_create.c:442
#8  0x00007ffff7ed68ec in clone3 () at ../sysdeps/unix/sysv/linux/x86_64/clone3.S:81

Thread 1 (Thread 0x7ffff7dca740 (LWP 8838) "field-pool"):
#0  0x00007ffff7e09267 in __GI_kill () at ../sysdeps/unix/syscall-template.S:120
#1  0x0000555555555349 in main () at /home/user/src/tests/testgen-src/field/field.cc:129
