# 802.11b at 2 Mbit/s, long preamble.
# One station that always has packets, nobody else, no losses. In microseconds:
#   DIFS 50 + PLCP 192 + MAC and LLC 144 + SIFS 10 + PLCP 192 + ACK 56
#   = 644.000, and a backoff of 0 to 31 slots of 20, which is what 32 samples of the slope are.
# For packets of 1500 bytes; for other lengths it is off by less than 1.
# How these files come about: docs/profiles.md

name     802.11b-2-long
bw       2Mbit/s
samples  32
prob     delay
0        644.000us
1        1284.000us
