# 802.11b at 11 Mbit/s, long preamble.
# One station that always has packets, no other stations, no losses. In microseconds:
#   DIFS 50 + PLCP 192 + MAC and LLC 27.091 + SIFS 10 + PLCP 192 + ACK 56
#   = 527.091, plus a backoff of 0 to 31 slots of 20, given by the 32 samples of the slope.
# For packets of 1500 bytes; for other lengths the error is less than 1.
# How these files are made: docs/profiles.md

name     802.11b-11-long
bw       11Mbit/s
samples  32
prob     delay
0        527.091us
1        1167.091us
