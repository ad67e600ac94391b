/* test/cel/fixture.h - one device and short ways to compile, evaluate and explain. */
#ifndef QUEUED_TEST_CEL_FIXTURE_H
#define QUEUED_TEST_CEL_FIXTURE_H

#include "allocator/base/arena.h"
#include "allocator/cel/cel.h"

/* A GPU of driver gpu.example.com with attributes type "gpu", model "A100", index 3, fast true, firmware 1.2.3,
 * links ["nv", "ib"], nic.example.org/speed 400, and capacity memory 80Gi. In the arena. */
const struct cel_device *fixture_device(struct arena *arena);

/* Compile as Kubernetes 1.`release`; the test fails when that fails. */
struct cel_expr *fixture_compile_for(int release, const char *text);
struct cel_expr *fixture_compile(const char *text);
/* Compile what must be refused; returns the problem. */
struct cel_problem fixture_refused_for(int release, struct str text);
struct cel_problem fixture_refused(const char *text);

#endif
