# Ethernet at 100 Mbit/s: what goes between frames, 20 bytes. Preamble and start of frame are 8, the gap is 12
# (IEEE 802.3). The frame itself is for the link to count: overhead = { base = "frame", bytes = 4, minimum = 64 }
# How these files come about: docs/profiles.md

name  ethernet-100
bw    100Mbit/s
prob  delay
0     1.6us
1     1.6us
