queued_program(bench-gang bench SOURCES gang.c LIBS allocator)
