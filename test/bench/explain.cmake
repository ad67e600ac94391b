queued_program(bench-explain bench SOURCES explain.c cluster.c LIBS allocator)
