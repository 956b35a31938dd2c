//! Packets in and out of the system, and the namespaces, interfaces, addresses and processes around them.
//!
//! This is the only crate of the workspace that holds unsafe code and talks to the kernel; it knows no other
//! crate of the workspace. Each module names one thing of the kernel's:
//!
//! | module | what |
//! |---|---|
//! | [`namespace`] | network namespaces that leave nothing behind |
//! | [`namespace_identity`], `namespace_search` | one namespace told from the next with its number, and found again |
//! | [`route_socket`], [`link`], [`address`], [`route`] | interfaces, addresses, routes, neighbours by route netlink |
//! | [`stack`], [`sysctl`] | what the kernel's own IP stack does on an interface |
//! | [`qdisc`] | the kernel's own queueing disciplines |
//! | [`offload`] | checksum, segmentation, receive and VLAN offloads of an interface |
//! | [`cable_end`], [`packet_socket`], [`xdp`], [`tap`], [`frame`] | frames received and sent in batches |
//! | [`exchange`] | frames sent, a wait and frames received by one system call, where the kernel has it |
//! | [`bpf`] | programs for the kernel's packet paths, assembled here |
//! | `offloaded` | trains cut into packets and joined again, checksums left open |
//! | [`nat`], [`ledger`] | a way to the outside, and the host's settings put back after it |
//! | [`detour`], [`barrier`] | frames of an interface led round by us, and held back where we are gone |
//! | [`saved_interface`] | interfaces of the host that are changed for a run, and put back |
//! | [`own_folder`] | folders and files of the user's own, which nobody else can put in our way |
//! | [`etc_files`] | `/etc/hosts` and `/etc/resolv.conf` as programs of one host find them |
//! | [`process`], [`listening`], [`udp`] | programs inside a namespace, whether they listen, probes between them |
//! | [`process_identity`], [`marked`], [`random`] | one process told from the next with its number; processes found by a mark |
//! | [`fuse_file`] | a file whose reads and writes this process answers |
//! | [`unix_socket`] | connections to Unix sockets that nothing waits for longer than it may |
//! | [`child_lifetime`], [`terminal`] | programs that end with us and get descriptors of ours; terminals |
//! | [`icmp`] | echoes of a real path |
//! | [`interrupt`] | a Ctrl-C that a long computation hears of |
//! | [`wait`], [`waker`], [`clock`] | sleeping until a descriptor is ready or an instant has come |
//! | [`ready_set`], [`descriptors`] | many descriptors: which of them are ready, how many there may be |
//! | [`watch`] | what becomes of interfaces and of a process meanwhile |
//! | [`scheduling`] | on which processor a thread runs, and before whom |
//! | [`user_namespace`], [`host`] | working without root; what this host can do |
//!
//! What is absent: any clock but the kernel's, any model of a network, any policy. No shell command is run.

pub mod address;
pub mod allocator;
pub mod barrier;
pub mod bpf;
pub mod cable_end;
pub mod child_lifetime;
pub mod clock;
pub mod descriptors;
pub mod detour;
pub mod etc_files;
pub mod exchange;
pub mod frame;
pub mod fuse_file;
pub mod host;
pub mod icmp;
pub mod interrupt;
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
mod offloaded;
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
pub mod stack;
pub mod sysctl;
pub mod tap;
pub mod terminal;
pub mod udp;
mod umem;
pub mod unix_socket;
pub mod user_namespace;
pub mod wait;
pub mod waker;
pub mod watch;
pub mod ways;
pub mod xdp;
