/* Calls whose outputs depend on a request code: ioctl, fcntl, prctl, *ctl. */
#include "preload/translate/syscall.h"

#include <fcntl.h>
#include <linux/prctl.h>

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

static unsigned size_of(const struct request *t, size_t n, uint64_t code)
{
	for (size_t i = 0; i < n; i++)
		if (t[i].code == code)
			return t[i].size;
	return 0;
}
#define SIZE_OF(table, code) size_of(table, sizeof(table) / sizeof(table)[0], code)

/* struct shmid_ds, msqid_ds, semid_ds; IPC_STAT is 2, the others are rare */
static unsigned ipc_size(const struct call *k)
{
	unsigned cmd = (unsigned)k->args[k->nr == SYS_semctl ? 2 : 1] & 0xff;

	if (cmd != 2 && cmd < 11)
		return cmd == 3 ? 96 : 0;
	return k->nr == SYS_shmctl ? 112 : k->nr == SYS_msgctl ? 120 : 104;
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
		if ((k->args[2] & 0xff) == 13) { /* GETALL: as many as IPC_STAT says */
			shim_note(false, "semctl(GETALL): the values read are not recorded");
			size = 0;
		}
		break;
	}
	call_effect_add(k, k->args[arg], size, TRC_EFFECT_WRITE);
}
