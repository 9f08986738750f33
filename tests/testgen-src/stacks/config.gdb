[Thread debugging using libthread_db enabled]
Using host libthread_db library "/lib/x86_64-linux-gnu/libthread_db.so.1".
[New Thread 0x7ffff7da96c0 (LWP 2004)]
[New Thread 0x7ffff75a86c0 (LWP 2005)]

Thread 2 "field-config" received signal SIGSEGV, Segmentation fault.
[Switching to Thread 0x7ffff7da96c0 (LWP 2004)]
config_first_letter (c=0x7ffff01526f0) at /home/user/src/tests/testgen-src/config.c:43
warning: Source file is more recent than executable.
43		return settings(c)->name[0];
#0  config_first_letter (c=0x7ffff01526f0) at /home/user/src/tests/testgen-src/config.c:43
No locals.
#1  0x0000555555555219 in one () at /home/user/src/tests/testgen-src/field/field.cc:54
No locals.
#2  run<one> () at /home/user/src/tests/testgen-src/field/field.cc:107
No locals.
#3  0x00007ffff7e561f5 in start_thread (arg=<optimized out>) at ./nptl/pthread_create.c:442
        ret = <optimized out>
        pd = <optimized out>
        out = <optimized out>
        unwind_buf = {cancel_jmp_buf = {{jmp_buf = {140737351685824, -4377781166161822641, -128, 0, 140737488347968, 140737343295488, 4377798507659492431, 4377798952702278735}, mask_was_saved = 0}}, priv = {pad = {0x0, 0x0, 0x0, 0x0}, data = {prev = 0x0, cleanup = 0x0, canceltype = 0}}}
        not_first_call = <optimized out>
#4  0x00007ffff7ed68ec in clone3 () at ../sysdeps/unix/sysv/linux/x86_64/clone3.S:81
No locals.
