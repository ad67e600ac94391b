# The runner of gang cases; reads submissions as the server does.
if(TARGET admission)
  queued_program(conformance-gang test SOURCES gang.c LIBS allocator manifest admission)
endif()
