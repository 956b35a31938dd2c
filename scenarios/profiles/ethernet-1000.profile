# Ethernet at 1 Gbit/s: what goes between frames, 20 bytes. Preamble and start of frame are 8, the gap is 12
# (IEEE 802.3). The frame itself is for the link to count: overhead = { base = "frame", bytes = 4, minimum = 64 }
# How these files come about: docs/profiles.md

name  ethernet-1000
bw    1000Mbit/s
prob  delay
0     160ns
1     160ns
