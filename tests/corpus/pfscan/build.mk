# A tree to scan, the same on every machine.
CFLAGS_pfscan := -D_GNU_SOURCE
ALL += $(BUILD)/pfscan.tree.made

$(BUILD)/pfscan.tree.made: pfscan/make-tree
	@rm -rf $(BUILD)/pfscan.tree
	sh pfscan/make-tree $(BUILD)/pfscan.tree
	@touch $@
