/* Calls whose outputs depend on a request code: ioctl, fcntl, prctl, *ctl. */
#include "preload/translate/syscall.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sockios.h>
#include <net/if.h>

struct request {
	uint32_t code;
	uint16_t size;
};

/* Terminal and socket requests from before the code held the size. */
static const struct request old_ioctls[] = {
	{ 0x5401, 36 }, /* TCGETS */    { 0x5405, 18 }, /* TCGETA */
	{ 0x540f, 4 },  /* TIOCGPGRP */ { 0x5411, 4 },  /* TIOCOUTQ */
	{ 0x5413, 8 },  /* TIOCGWINSZ */{ 0x5415, 4 },  /* TIOCMGET */
	{ 0x5419, 4 },  /* TIOCGSOFTCAR */ { 0x541b, 4 }, /* FIONREAD */
	{ 0x541e, 60 }, /* TIOCGSERIAL */ { 0x5424, 4 }, /* TIOCGETD */
	{ 0x5429, 4 },  /* TIOCGSID */  { 0x8903, 4 },  /* FIOGETOWN */
	{ 0x8904, 4 },  /* SIOCGPGRP */ { 0x8905, 4 },  /* SIOCATMARK */
	{ 0x8906, 16 }, /* SIOCGSTAMP */{ 0x8907, 16 }, /* SIOCGSTAMPNS */
	{ 0x8912, 16 }, /* SIOCGIFCONF */ { 0x8913, 40 }, /* SIOCGIFFLAGS */
	{ 0x8915, 40 }, /* SIOCGIFADDR */ { 0x8919, 40 }, /* SIOCGIFBRDADDR */
	{ 0x891b, 40 }, /* SIOCGIFNETMASK */ { 0x8921, 40 }, /* SIOCGIFMTU */
	{ 0x8927, 40 }, /* SIOCGIFHWADDR */ { 0x8933, 40 }, /* SIOCGIFINDEX */
	{ 0x8910, 40 }, /* SIOCGIFNAME */
};

static const struct request fcntls[] = {
	{ F_GETLK, 32 }, { 36 /* F_OFD_GETLK */, 32 }, { 16 /* F_GETOWN_EX */, 8 },
	{ 1035 /* F_GET_RW_HINT */, 8 }, { 1037 /* F_GET_FILE_RW_HINT */, 8 },
};

static const struct request prctls[] = {
	{ PR_GET_NAME, 16 },      { PR_GET_PDEATHSIG, 4 },     { PR_GET_TSC, 4 },
	{ PR_GET_UNALIGN, 4 },    { PR_GET_FPEMU, 4 },         { PR_GET_FPEXC, 4 },
	{ PR_GET_ENDIAN, 4 },     { PR_GET_CHILD_SUBREAPER, 4 }, { PR_GET_TID_ADDRESS, 8 },
};

/* Terminal and socket requests from before the code held the size that write nothing. */
static bool only_reads(uint32_t code)
{
	return code == 0x5421 /* FIONBIO */ || code == 0x5450 || code == 0x5451 /* FIONCLEX, FIOCLEX */ ||
	       (code >= 0x5402 && code <= 0x5404) /* TCSETS.. */ || code == 0x5410 /* TIOCSPGRP */ ||
	       code == 0x5414 /* TIOCSWINSZ */ || (code >= 0x5409 && code <= 0x540e) /* TCSBRK .. TIOCSCTTY */;
}

static unsigned size_of(const struct request *t, size_t n, uint64_t code)
{
	for (size_t i = 0; i < n; i++)
		if (t[i].code == code)
			return t[i].size;
	return 0;
}
#define SIZE_OF(table, code) size_of(table, sizeof(table) / sizeof(table)[0], code)

/* What the commands of shmctl, msgctl and semctl write. */
static const struct {
	uint16_t nr, command, size;
} ipcs[] = {
	{ SYS_shmctl, 2 /* IPC_STAT */, 112 }, { SYS_shmctl, 3 /* IPC_INFO */, 72 }, { SYS_shmctl, 13 /* SHM_STAT */, 112 },
	{ SYS_shmctl, 14 /* SHM_INFO */, 48 }, { SYS_shmctl, 15 /* SHM_STAT_ANY */, 112 },
	{ SYS_msgctl, 2, 120 }, { SYS_msgctl, 3, 32 }, { SYS_msgctl, 11, 120 }, { SYS_msgctl, 12, 32 },
	{ SYS_msgctl, 13, 120 },
	{ SYS_semctl, 2, 104 }, { SYS_semctl, 3, 40 }, { SYS_semctl, 18, 104 }, { SYS_semctl, 19, 40 },
	{ SYS_semctl, 20, 104 },
};

#define GETALL 13u

/* As many numbers of two bytes as there are semaphores. */
static unsigned semaphores(const struct call *k)
{
	uint8_t ds[104];
	uint64_t n = 0;

	if (!raw_failed(raw(SYS_semctl, k->args[0], 0, 2, ds)))
		memcpy(&n, ds + 80, 8);
	return n > 32000 ? 0 : 2 * (unsigned)n;
}

static unsigned ipc_size(const struct call *k)
{
	unsigned cmd = (unsigned)k->args[k->nr == SYS_semctl ? 2 : 1] & 0xff;

	if (k->nr == SYS_semctl && cmd == GETALL)
		return semaphores(k);
	for (size_t i = 0; i < sizeof ipcs / sizeof ipcs[0]; i++)
		if (ipcs[i].nr == k->nr && ipcs[i].command == cmd)
			return ipcs[i].size;
	return 0;
}

/* A request of today says how much it writes, one of old is in the table; the size of _IOC_WRITE alone: nothing. */
bool call_ioctl_known(const struct call *k)
{
	uint32_t code = (uint32_t)k->args[1];

	return SIZE_OF(old_ioctls, code) || only_reads(code) || (code >> 30 && (code >> 16 & 0x3fff));
}

/* struct ifconf: the list is behind a pointer. */
static void interfaces(struct call *k)
{
	struct ifconf c;

	if (tr_copy(&c, (void *)k->args[2], sizeof c) && c.ifc_len > 0)
		call_effect_add(k, (uint64_t)c.ifc_buf, (uint64_t)c.ifc_len, TRC_EFFECT_WRITE);
}

void call_ioctl_outputs(struct call *k)
{
	uint32_t code = (uint32_t)k->args[1];
	unsigned size = 0, arg = 2;

	if (raw_failed(k->result))
		return;
	switch (k->nr) {
	case SYS_ioctl:
		size = SIZE_OF(old_ioctls, code);
		if (!size && code >> 31 & 1) /* _IOC_READ: the kernel writes */
			size = code >> 16 & 0x3fff;
		break;
	case SYS_fcntl:
		size = SIZE_OF(fcntls, code);
		break;
	case SYS_prctl:
		arg = 1;
		size = SIZE_OF(prctls, (uint32_t)k->args[0]);
		break;
	case SYS_shmctl: case SYS_msgctl:
		size = ipc_size(k);
		break;
	case SYS_semctl:
		arg = 3;
		size = ipc_size(k);
		break;
	}
	call_effect_add(k, k->args[arg], size, TRC_EFFECT_WRITE);
	if (k->nr == SYS_ioctl && code == SIOCGIFCONF)
		interfaces(k);
}
