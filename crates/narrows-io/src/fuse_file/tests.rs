use super::message::{Header, Incoming, attributes, header, opened, start};
use super::*;

/// A request as the kernel sends it.
fn request(opcode: u32, unique: u64, body: &[u8]) -> Vec<u8> {
    let mut message = (40 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend(opcode.to_ne_bytes());
    message.extend(unique.to_ne_bytes());
    message.extend([0; 24]);
    message.extend(body);
    message
}

fn read(message: &[u8]) -> Incoming<'_> {
    Incoming::read(&Header::read(message).unwrap(), &message[message::HEADER..])
}

#[test]
fn requests_are_read_as_the_kernel_lays_them_out() {
    let mut body = vec![0; 40];
    body[16..20].copy_from_slice(&3_u32.to_ne_bytes());
    body[32..36].copy_from_slice(&0o4000_u32.to_ne_bytes());
    body.extend(b"abcd");
    assert_eq!(read(&request(16, 5, &body)), Incoming::Write { bytes: b"abc", flags: 0o4000 });
    assert_eq!(read(&request(15, 5, &body)), Incoming::Read { size: 3 });
    let poll: Vec<u8> = [0_u64, 9, 1].iter().flat_map(|word| word.to_ne_bytes()).collect();
    assert_eq!(read(&request(40, 6, &poll)), Incoming::Poll { waiter: Some(9) });
    assert_eq!(read(&request(36, 7, &5_u64.to_ne_bytes())), Incoming::Interrupt { of: 5 });
    assert_eq!(read(&request(1, 8, b"name\0")), Incoming::Unknown);
}

#[test]
fn a_request_cut_short_breaks_nothing() {
    let whole = request(16, 5, &[0xff; 60]);
    for length in 0..whole.len() {
        let Some(header) = Header::read(&whole[..length]) else {
            assert!(length < message::HEADER);
            continue;
        };
        for opcode in 0..60_u32 {
            let mut bytes = whole[..length].to_vec();
            bytes[4..8].copy_from_slice(&opcode.to_ne_bytes());
            let again = Header::read(&bytes).unwrap();
            assert_eq!(again.unique, header.unique);
            Incoming::read(&again, &bytes[message::HEADER..]);
        }
    }
}

#[test]
fn answers_have_the_lengths_that_the_kernel_insists_on() {
    assert_eq!(start(40, 1).len(), 64);
    assert_eq!(attributes(geteuid(), getegid()).len(), 104);
    assert_eq!(opened().len(), 16);
    assert_eq!(header(1, 0, 16)[..4], 32_u32.to_ne_bytes());
}

#[test]
fn what_stands_in_the_way_is_named_and_left_alone() {
    let path = std::env::temp_dir().join(format!("fuse-file-{}", std::process::id()));
    fs::write(&path, "mine").unwrap();
    match FuseFile::mount(&path) {
        Err(FuseFileError::Exists(at)) => assert_eq!(at, path),
        // Where there is no FUSE, nothing was tried.
        Err(FuseFileError::NoFuse(_)) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    fs::remove_file(&path).unwrap();
}

#[test]
fn own_mounts_are_found_by_their_name() {
    let table = "36 35 98:0 / /mnt rw,noatime - ext3 /dev/root rw\n\
                 40 35 0:52 / /tmp/a\\040b/c\\134d rw,nosuid shared:3 master:1 - fuse narrows rw,user_id=0\n\
                 41 35 0:53 / /tmp/other rw - fuse narrowsfs rw\n42 35 0:54 / /tmp/third rw - fuse.sshfs narrows rw\n";
    assert_eq!(super::served(table), [Path::new("/tmp/a b/c\\d")]);
}
