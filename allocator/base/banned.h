/* allocator/base/banned.h - functions that nobody may call, and what to use instead.
 *
 * Include it last in a .c file. strcpy, strcat, sprintf -> struct buf or snprintf; atoi -> strtoll with checks;
 * strtok -> struct str; gmtime, localtime -> the _r forms. */
#ifndef QUEUED_BASE_BANNED_H
#define QUEUED_BASE_BANNED_H

#pragma GCC poison strcpy strcat sprintf vsprintf atoi atol strtok gmtime localtime

#endif
