# The placement experiment on the openb traces.
queued_program(bench-fgd bench SOURCES fgd.c LIBS allocator)
