CFLAGS_kvserver := -D_GNU_SOURCE kvserver/client.c
$(BUILD)/kvserver: kvserver/client.c kvserver/client.h
