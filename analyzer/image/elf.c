/* One ELF file: opening it, and the few facts of its headers we need. */
#include "analyzer/image/internal.h"
#include "common/door.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_ours(Elf *elf)
{
	GElf_Ehdr eh;

	return elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &eh) &&
	       eh.e_ident[EI_CLASS] == ELFCLASS64 && eh.e_ident[EI_DATA] == ELFDATA2LSB &&
	       eh.e_machine == EM_X86_64;
}

bool img_elf_open_fd(struct img_elf *f, int fd, const char *path)
{
	struct stat st;

	*f = (struct img_elf){ .fd = -1 };
	elf_version(EV_CURRENT);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		f->elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	if (!f->elf || !is_ours(f->elf)) {
		elf_end(f->elf);
		close(fd);
		f->elf = NULL;
		return false;
	}
	f->fd = fd;
	f->path = xstrdup(path);
	return true;
}

bool img_elf_open(struct img_elf *f, const char *path)
{
	int fd = door_open(DOOR_ELF, path);

	*f = (struct img_elf){ .fd = -1 };
	return fd >= 0 && img_elf_open_fd(f, fd, path);
}

bool img_elf_open_memory(struct img_elf *f, void *image, size_t n)
{
	*f = (struct img_elf){ .fd = -1 };
	elf_version(EV_CURRENT);
	f->elf = elf_memory(image, n);
	if (f->elf && is_ours(f->elf))
		return true;
	elf_end(f->elf);
	f->elf = NULL;
	return false;
}

void img_elf_close(struct img_elf *f)
{
	elf_end(f->elf);
	if (f->elf && f->fd >= 0)
		close(f->fd);
	free(f->path);
	*f = (struct img_elf){ .fd = -1 };
}

bool img_elf_has_section(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;
	size_t names;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *s = gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;

		if (s && !strcmp(s, name) && sh.sh_type != SHT_NOBITS && sh.sh_size)
			return true;
	}
	return false;
}

void img_elf_segments(Elf *elf, img_segments_t *out)
{
	size_t n;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &n))
		return;
	for (size_t i = 0; i < n && i < 65536; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph))
			return;
		/* Wrapping sizes are nonsense: such a segment was never mapped. */
		if (ph.p_type == PT_LOAD && ph.p_memsz && ph.p_filesz <= ph.p_memsz &&
		    ph.p_vaddr + ph.p_memsz > ph.p_vaddr &&
		    ph.p_offset + ph.p_filesz >= ph.p_offset)
			vec_push(out, (struct img_segment){ ph.p_vaddr, ph.p_offset, ph.p_filesz,
							    ph.p_memsz, ph.p_flags });
	}
}

bool img_elf_tls(Elf *elf, uint64_t *memsz, uint64_t *align)
{
	size_t n;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n && i < 65536; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph))
			return false;
		if (ph.p_type == PT_TLS) {
			*memsz = ph.p_memsz;
			*align = ph.p_align ? ph.p_align : 1;
			return (*align & (*align - 1)) == 0;
		}
	}
	return false;
}

bool img_elf_has_textrel(Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Dyn dyn;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_DYNAMIC)
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);

		for (int i = 0; data && gelf_getdyn(data, i, &dyn); i++)
			if (dyn.d_tag == DT_TEXTREL ||
			    (dyn.d_tag == DT_FLAGS && (dyn.d_un.d_val & DF_TEXTREL)))
				return true;
	}
	return false;
}

const uint8_t *img_elf_build_id(Elf *elf, size_t *n)
{
	const void *id;
	ssize_t len = dwelf_elf_gnu_build_id(elf, &id);

	if (len <= 0 || len > 64)
		return NULL;
	*n = (size_t)len;
	return id;
}
