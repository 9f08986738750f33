#include "k.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <mqueue.h>
union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
	struct seminfo *info;
};
int main(void)
{
	int id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
	char *a = shmat(id, 0, 0), *b = shmat(id, 0, 0), *r = shmat(id, 0, SHM_RDONLY);
	strcpy(a, "sysv");
	SAY("%s %s", b, r);
	strcpy(b + 4096, "page");
	if (!strcmp(r + 4096, "page"))
		SAY("alias");
	struct shmid_ds ds;
	R(shmctl(id, IPC_STAT, &ds));
	SAY("%zu %ld", ds.shm_segsz, (long)ds.shm_nattch);
	pid_t p = fork();
	if (!p) {
		strcpy(a, "child");
		_exit(0);
	}
	waitpid(p, 0, 0);
	SAY("%s", b);
	R(shmdt(a));
	R(shmdt(a));
	SAY("%s", b);
	R(shmctl(id, IPC_RMID, 0));
	SAY("%s", r);
	R(shmdt(b));
	R(shmdt(r));
	int q = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
	struct {
		long t;
		char x[32];
	} m = {3, "message three"};
	R(msgsnd(q, &m, 14, 0));
	m.t = 1;
	strcpy(m.x, "one");
	R(msgsnd(q, &m, 4, 0));
	memset(&m, 0, sizeof m);
	R(msgrcv(q, &m, 32, 3, IPC_NOWAIT));
	SAY("%ld %s", m.t, m.x);
	R(msgrcv(q, &m, 2, 0, 0));
	R(msgrcv(q, &m, 2, 0, MSG_NOERROR));
	SAY("%ld %.2s", m.t, m.x);
	R(msgrcv(q, &m, 2, 0, IPC_NOWAIT));
	struct msqid_ds md;
	R(msgctl(q, IPC_STAT, &md));
	SAY("%ld", (long)md.msg_qnum);
	R(msgctl(q, IPC_RMID, 0));
	int s = semget(IPC_PRIVATE, 3, IPC_CREAT | 0600);
	unsigned short v[3] = {1, 2, 3};
	union semun u = {.array = v};
	R(semctl(s, 0, SETALL, u));
	struct sembuf o[2] = {{0, -1, SEM_UNDO}, {2, 4, 0}};
	R(semop(s, o, 2));
	memset(v, 0, 6);
	R(semctl(s, 0, GETALL, u));
	SAY("%d %d %d", v[0], v[1], v[2]);
	R(semctl(s, 1, GETVAL));
	R(semctl(s, 1, GETPID) == getpid());
	struct semid_ds sd;
	u.buf = &sd;
	R(semctl(s, 0, IPC_STAT, u));
	SAY("%lu", (unsigned long)sd.sem_nsems);
	o[0].sem_flg = IPC_NOWAIT;
	R(semop(s, o, 1));
	struct timespec z = {0, 1000};
	o[0].sem_flg = 0;
	R(semtimedop(s, o, 1, &z));
	struct seminfo si;
	u.info = &si;
	R(semctl(0, 0, IPC_INFO, u) >= 0);
	SAY("%d", si.semmni > 0);
	R(semctl(s, 0, IPC_RMID));
	struct mq_attr at = {.mq_maxmsg = 3, .mq_msgsize = 16}, old;
	mqd_t d = mq_open("/csched-kernel-q", O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0600, &at);
	if (d < 0) {
		SAY("mq %s", ername(errno));
		return 0;
	}
	mq_unlink("/csched-kernel-q");
	R(mq_send(d, "low", 3, 1));
	R(mq_send(d, "high", 4, 9));
	char b2[16];
	unsigned pr;
	R(mq_receive(d, b2, 16, &pr));
	SAY("%.4s %u", b2, pr);
	R(mq_receive(d, b2, 4, &pr));
	R(mq_getattr(d, &at));
	SAY("%ld %ld", at.mq_curmsgs, at.mq_msgsize);
	R(mq_receive(d, b2, 16, 0));
	R(mq_receive(d, b2, 16, &pr));
	return 0;
}
