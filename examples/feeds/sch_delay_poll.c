/* Writes delays that alternate between two values to a device file of the qdisc `delay` (Grohmann, Stuttgart 2023):
 *
 *     cc -O2 -o sch_delay_poll sch_delay_poll.c
 *     narrows feed --device /tmp/delay -- ./sch_delay_poll /tmp/delay 300000 700000 [COUNT]
 *
 * It sleeps in poll until there is room for many (`--wake-level`), reads how many, and writes that many. Without COUNT it
 * continues until the device is removed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static int64_t values[65536];
    uint32_t room;
    if (argc < 4)
        return fprintf(stderr, "usage: %s DEVICE NANOSECONDS NANOSECONDS [COUNT]\n", argv[0]), 2;
    struct pollfd device = {.fd = open(argv[1], O_RDWR), .events = POLLOUT};
    if (device.fd < 0)
        return perror(argv[1]), errno == EBUSY ? 3 : 2;
    uint64_t count = argc > 4 ? strtoull(argv[4], NULL, 10) : UINT64_MAX;
    for (uint64_t written = 0; written < count;) {
        if (poll(&device, 1, -1) != 1 || !(device.revents & POLLOUT) || read(device.fd, &room, sizeof room) != 4)
            return 1;
        if (room > count - written)
            room = count - written;
        if (room > 65536)
            room = 65536;
        for (uint32_t at = 0; at < room; at++)
            values[at] = atoll(argv[2 + (written + at) % 2]);
        ssize_t taken = write(device.fd, values, room * sizeof values[0]);
        if (taken < 0)
            return 1;
        written += (uint64_t)taken / sizeof values[0];
    }
    return 0;
}
