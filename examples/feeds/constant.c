/* Writes the same delay for every packet to a feed of a run; every thousandth packet is lost:
 *
 *     cc -O2 -o constant constant.c && ./constant SOCKET NANOSECONDS
 *
 * It only needs to write: `write` blocks until the run needs more values. With a small buffer, a change of the
 * delay takes effect soon. The integers are little-endian, as they are in the memory of x86 and most ARM machines. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int feed = socket(AF_UNIX, SOCK_STREAM, 0), buffer = 16384;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int64_t values[256], last;
    if (argc != 3 || strlen(argv[1]) >= sizeof address.sun_path)
        return fprintf(stderr, "usage: %s SOCKET NANOSECONDS\n", argv[0]), 2;
    strcpy(address.sun_path, argv[1]);
    signal(SIGPIPE, SIG_IGN);
    setsockopt(feed, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    if (connect(feed, (struct sockaddr *)&address, sizeof address) != 0)
        return perror(argv[1]), 2;
    for (uint64_t number = 0;;) {
        for (int at = 0; at < 256; at++)
            values[at] = ++number % 1000 == 0 ? -1 : atoll(argv[2]);
        for (size_t sent = 0; sent < sizeof values;) {
            ssize_t more = write(feed, (char *)values + sent, sizeof values - sent);
            if (more <= 0) /* -1: the feed has a writer; -2: invalid values; -3: the run has ended */
                return read(feed, &last, sizeof last) == sizeof last && last == -3 ? 0 : 1;
            sent += more;
        }
    }
}
