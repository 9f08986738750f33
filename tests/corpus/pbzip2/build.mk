# Inputs as large as the paper's: 80 KB, 2.6 MB, 16 MB.
LIBS_pbzip2 := -lbz2
ALL += $(BUILD)/pbzip2.S $(BUILD)/pbzip2.M $(BUILD)/pbzip2.L

$(BUILD)/pbzip2.make-input: pbzip2/make-input.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $<
$(BUILD)/pbzip2.S: KB := 80
$(BUILD)/pbzip2.M: KB := 2600
$(BUILD)/pbzip2.L: KB := 16000
$(BUILD)/pbzip2.S $(BUILD)/pbzip2.M $(BUILD)/pbzip2.L: $(BUILD)/pbzip2.make-input
	$< $(KB) $@
