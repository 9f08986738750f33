#include "k.h"
#include <dirent.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <linux/stat.h>
static int cmp(const void *a, const void *b)
{
	return strcmp(*(char **)a, *(char **)b);
}
int main(void)
{
	mkdir("filesdir", 0755);
	chdir("filesdir");
	char n[20];
	for (int i = 0; i < 300; i++) {
		sprintf(n, "entry-%d", i);
		close(open(n, O_CREAT | O_WRONLY, 0644));
	}
	DIR *d = opendir(".");
	struct dirent *e;
	char *names[400];
	int k = 0;
	while ((e = readdir(d)))
		names[k++] = strdup(e->d_name);
	qsort(names, k, sizeof *names, cmp);
	unsigned s = 0;
	for (int i = 0; i < k; i++)
		s = s * 7 + sum(names[i], strlen(names[i]));
	SAY("%d %u", k, s);
	rewinddir(d);
	k = 0;
	while (readdir(d))
		k++;
	SAY("%d", k);
	closedir(d);
	for (int i = 0; i < 300; i++) {
		sprintf(n, "entry-%d", i);
		unlink(n);
	}
	int f = open("f", O_RDWR | O_CREAT, 0640);
	R(ftruncate(f, 5000));
	struct stat st;
	fstat(f, &st);
	SAY("%o %ld", st.st_mode, (long)st.st_size);
	struct statx sx;
	memset(&sx, 0x5a, sizeof sx);
	R(statx(AT_FDCWD, "f", 0, STATX_SIZE | STATX_MODE, &sx));
	SAY("%lu %o", (unsigned long)sx.stx_size, sx.stx_mode);
	symlink("some/where", "l");
	char b[64];
	memset(b, '#', 64);
	R(readlink("l", b, 64));
	SAY("%.12s", b);
	R(readlink("l", b, 3));
	R(readlink("f", b, 3));
	char *c = getcwd(0, 0);
	SAY("%s", strrchr(c, '/'));
	R(getcwd(b, 2) != 0);
	struct statfs sf;
	R(statfs(".", &sf));
	SAY("%d", sf.f_bsize > 0);
	struct statvfs sv;
	R(fstatvfs(f, &sv));
	R(setxattr("f", "user.k", "value", 5, 0));
	long r = getxattr("f", "user.k", b, 64);
	SAY("%s", r == 5 ? "value" : ername(errno));
	r = getxattr("f", "user.k", 0, 0);
	r = getxattr("f", "user.k", b, 2);
	SAY("%s", r == -1 ? ername(errno) : "?");
	R(listxattr("f", b, 64));
	R(fgetxattr(f, "user.none", b, 64));
	R(removexattr("f", "user.k"));
	struct flock fl = {F_WRLCK, SEEK_SET, 10, 20};
	R(fcntl(f, F_SETLK, &fl));
	pid_t p = fork();
	if (!p) {
		struct flock g = {F_RDLCK, SEEK_SET, 0, 100};
		fcntl(f, F_GETLK, &g);
		_exit(g.l_type == F_WRLCK && g.l_start == 10 && g.l_pid == getppid() ? 7 : 8);
	}
	int w;
	waitpid(p, &w, 0);
	SAY("%d", WEXITSTATUS(w));
	struct flock g = {F_RDLCK, SEEK_SET, 0, 100, 0};
	R(fcntl(f, F_GETLK, &g));
	SAY("%d %ld", g.l_type, (long)g.l_start);
	g = (struct flock){F_WRLCK, SEEK_SET, 0, 100, 0};
	int f2 = open("f", O_RDWR);
	R(fcntl(f2, F_OFD_GETLK, &g));
	SAY("%d %d %ld", g.l_type, g.l_pid == getpid(), (long)g.l_len);
	R(flock(f, LOCK_EX));
	R(flock(f2, LOCK_EX | LOCK_NB));
	struct f_owner_ex ox = {F_OWNER_PID, getpid()}, o2;
	fcntl(f, F_SETOWN_EX, &ox);
	R(fcntl(f, F_GETOWN_EX, &o2));
	SAY("%d %d", o2.type, o2.pid == getpid());
	uint64_t hint = 3;
	R(fcntl(f, 1036, &hint));
	hint = 0;
	R(fcntl(f, 1035, &hint));
	SAY("%lu", (unsigned long)hint);
	struct timespec ts[2] = {{5, 6}, {7, 8}};
	R(futimens(f, ts));
	fstat(f, &st);
	SAY("%ld %ld", (long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	R(fallocate(f, FALLOC_FL_KEEP_SIZE, 0, 9000));
	R(renameat2(AT_FDCWD, "f", AT_FDCWD, "l", RENAME_EXCHANGE));
	R(linkat(AT_FDCWD, "l", AT_FDCWD, "hard", 0));
	R(faccessat(AT_FDCWD, "f", R_OK, AT_SYMLINK_NOFOLLOW));
	struct {
		struct file_handle h;
		char x[128];
	} fh;
	fh.h.handle_bytes = 0;
	int mid;
	R(name_to_handle_at(AT_FDCWD, "hard", &fh.h, &mid, 0));
	fh.h.handle_bytes = 128;
	R(name_to_handle_at(AT_FDCWD, "hard", &fh.h, &mid, 0));
	SAY("%d", fh.h.handle_bytes > 0);
	int flags;
	SAY("%d", ioctl(f, _IOR('f', 1, long), &flags) >= -1);
	unlink("f");
	unlink("l");
	unlink("hard");
	chdir("..");
	rmdir("filesdir");
	return 0;
}
