//! Packet I/O with the kernel, and the namespaces, interfaces, addresses and processes around it.
//!
//! This is the only crate of the workspace with unsafe code and kernel calls; it depends on no other crate of the
//! workspace. Each module covers one kernel facility:
//!
//! | module | contents |
//! |---|---|
//! | [`namespace`] | network namespaces that leave nothing behind |
//! | [`namespace_identity`], `namespace_search` | distinguishes a namespace from a later one with the same number, and finds it again |
//! | [`route_socket`], [`link`], [`address`], [`route`] | interfaces, addresses, routes, neighbours by route netlink |
//! | [`stack`], [`sysctl`] | settings of the kernel's own IP stack on an interface |
//! | [`qdisc`] | the kernel's own queueing disciplines |
//! | [`offload`] | checksum, segmentation, receive and VLAN offloads of an interface |
//! | [`cable_end`], [`packet_socket`], [`xdp`], [`tap`], [`frame`] | receiving and sending frames in batches |
//! | [`exchange`] | sending, waiting and receiving in one system call, if the kernel has it |
//! | [`bpf`] | programs for the kernel's packet paths, assembled here |
//! | [`offloaded`] | trains split into packets and joined again, incomplete checksums |
//! | [`nat`], [`ledger`] | NAT to outside networks, and restoring the host's settings afterwards |
//! | [`detour`], [`barrier`] | redirecting an interface's frames through us, and blocking them if we are gone |
//! | [`splice`] | joining two interfaces through a veth pair |
//! | [`saved_interface`] | interfaces of the host that are changed for a run, and restored |
//! | [`own_folder`] | the user's own folders and files, protected from other users |
//! | [`etc_files`] | `/etc/hosts` and `/etc/resolv.conf` as seen by programs of one host |
//! | [`process`], [`listening`], [`udp`] | programs inside a namespace, whether they listen, probes between them |
//! | [`process_identity`], [`marked`], [`random`] | distinguishes a process from a later one with the same ID; finds processes by a mark |
//! | [`fuse_file`] | a file whose reads and writes this process serves |
//! | [`unix_socket`] | connections to Unix sockets with time limits |
//! | [`child_lifetime`], [`terminal`] | programs that end with us and inherit descriptors; terminals |
//! | [`icmp`] | ICMP echo on a real path |
//! | [`interrupt`] | Ctrl-C for long computations |
//! | [`wait`], [`waker`], [`clock`] | sleeping until a descriptor is ready or an instant is reached |
//! | [`ready_set`], [`descriptors`] | many descriptors: which of them are ready, and the limit on their number |
//! | [`watch`], [`folder_watch`] | monitoring interfaces, a process, and a folder |
//! | [`scheduling`] | processor and priority of a thread |
//! | [`user_namespace`], [`host`] | working without root; capabilities of this host |
//!
//! Not included: any clock except the kernel's, any model of a network, any policy. No shell command is run.

pub mod address;
pub mod allocator;
pub mod barrier;
pub mod bpf;
pub mod cable_end;
pub mod child_lifetime;
pub mod clock;
pub mod confinement;
pub mod descriptors;
pub mod detour;
pub mod etc_files;
pub mod exchange;
pub mod folder_watch;
pub mod frame;
pub mod fuse_file;
pub mod host;
pub mod icmp;
pub mod interrupt;
pub mod kernel_end;
pub mod ledger;
pub mod link;
pub mod listening;
pub mod marked;
pub mod namespace;
pub mod namespace_identity;
mod namespace_search;
pub mod nat;
mod netlink;
pub mod offload;
pub mod offloaded;
pub mod own_folder;
pub mod packet_socket;
pub mod privileges;
pub mod process;
pub mod process_identity;
pub mod qdisc;
pub mod random;
pub mod ready_set;
pub mod route;
pub mod route_socket;
pub mod saved_interface;
pub mod scheduling;
mod socket_option;
pub mod splice;
pub mod stack;
pub mod sysctl;
pub mod tap;
pub mod terminal;
pub mod tunnel;
pub mod udp;
mod umem;
pub mod unix_socket;
pub mod user_namespace;
pub mod wait;
pub mod waker;
pub mod watch;
pub mod ways;
pub mod xdp;
