/* Weighted round robin by packets, as a plugin of narrows:
 *
 *     clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -o alternate.wasm alternate.c
 *
 * Flows take turns. At its turn a flow sends as many packets as its weight says, times the parameter `burst`. */

#define EXPORT(name) __attribute__((export_name(#name))) name
#define FLOWS 1024

typedef int i32;
typedef long long i64;

static struct {
    i32 weight, packets;
} flows[FLOWS];
static i32 turn, left, burst = 1, last = -1;

i32 EXPORT(abi_version)(void) { return 1; }

/* parameters = { burst = 2 } */
i32 EXPORT(parameter_burst)(i64 packets) {
    if (packets < 1 || packets > 1000) return 1;
    burst = (i32)packets;
    return 0;
}

i32 EXPORT(join)(i32 flow, i32 weight, i32 longest, i32 band) {
    if (flow >= FLOWS) return 1;
    flows[flow].weight = weight;
    flows[flow].packets = 0;
    if (flow > last) last = flow;
    return 0;
}

i32 EXPORT(set_weight)(i64 now, i32 flow, i32 weight) {
    flows[flow].weight = weight;
    return 0;
}

void EXPORT(enqueue)(i64 now, i32 flow, i32 length, i32 packets) { flows[flow].packets = packets; }

/* The number of a flow, or -1: nothing waits. Asking changes nothing that matters: it passes over flows with nothing to send. */
i64 EXPORT(select)(i64 now) {
    for (i32 tried = 0; tried <= last + 1; tried++) {
        if (flows[turn].packets > 0 && left > 0) return turn;
        turn = turn >= last ? 0 : turn + 1;
        left = flows[turn].weight * burst;
    }
    return -1;
}

void EXPORT(sent)(i64 now, i32 flow, i32 length, i32 next, i32 packets) {
    flows[flow].packets = packets;
    left--;
}

void EXPORT(dropped)(i64 now, i32 flow, i32 next, i32 packets) { flows[flow].packets = packets; }
