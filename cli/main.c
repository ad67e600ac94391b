#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <curl/curl.h>

#include "cli/cli.h"

#include "allocator/base/banned.h"

static const char *environment(const char *name)
{
    return getenv(name);
}

static size_t terminal_width(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static bool wants_color(void)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(STDERR_FILENO) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

int main(int argc, char **argv)
{
    struct cli cli = {.out = stdout,
                      .err = stderr,
                      .is_tty = isatty(STDOUT_FILENO),
                      .has_color = wants_color(),
                      .width = terminal_width(),
                      .env = environment};
    int status;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
        return EXIT_SERVER;
    status = cli_run(&cli, argc, (const char *const *)argv);
    curl_global_cleanup();
    return status;
}
