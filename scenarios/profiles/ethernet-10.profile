# Ethernet at 10 Mbit/s: what goes between frames, 20 bytes. Preamble and start of frame are 8, the gap is 12
# (IEEE 802.3). The frame itself is for the link to count: overhead = { base = "frame", bytes = 4, minimum = 64 }
# How these files come about: docs/profiles.md

name  ethernet-10
bw    10Mbit/s
prob  delay
0     16us
1     16us
