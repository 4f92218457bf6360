//! The header of a frame.

/// The length of a header in bytes.
pub const HEADER_LENGTH: usize = 24;
/// The first byte of a request, which no line of the text protocols begins with.
pub const REQUEST_MAGIC: u8 = 0x80;
/// The first byte of a reply.
pub const RESPONSE_MAGIC: u8 = 0x81;

/// The header of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    opcode: u8,
    key_length: u16,
    extras_length: u8,
    body_length: u32,
    opaque: [u8; 4],
    cas: u64,
}

impl Header {
    #[inline]
    pub(super) fn read(bytes: &[u8; HEADER_LENGTH]) -> Header {
        let [_, opcode, k0, k1, extras_length, _, _, _, rest @ ..] = *bytes;
        let [b0, b1, b2, b3, o0, o1, o2, o3, cas @ ..] = rest;
        Header {
            opcode,
            key_length: u16::from_be_bytes([k0, k1]),
            extras_length,
            body_length: u32::from_be_bytes([b0, b1, b2, b3]),
            opaque: [o0, o1, o2, o3],
            cas: u64::from_be_bytes(cas),
        }
    }

    /// The command's number.
    pub fn opcode(&self) -> u8 {
        self.opcode
    }

    /// The bytes that every reply gives back.
    pub fn opaque(&self) -> [u8; 4] {
        self.opaque
    }

    /// The CAS id that the item must have; 0: whatever it has.
    pub fn cas(&self) -> u64 {
        self.cas
    }

    pub(super) fn key_length(&self) -> usize {
        self.key_length.into()
    }

    pub(super) fn extras_length(&self) -> usize {
        self.extras_length.into()
    }

    pub(super) fn body_length(&self) -> usize {
        self.body_length as usize
    }

    /// Appends the header of a request, for clients and tests.
    pub fn write_request(out: &mut Vec<u8>, opcode: u8, lengths: [usize; 3], opaque: u32, cas: u64) {
        let [extras, key, value] = lengths;
        out.extend_from_slice(&[REQUEST_MAGIC, opcode]);
        out.extend_from_slice(&(key as u16).to_be_bytes());
        out.extend_from_slice(&[extras as u8, 0, 0, 0]);
        out.extend_from_slice(&((extras + key + value) as u32).to_be_bytes());
        out.extend_from_slice(&opaque.to_be_bytes());
        out.extend_from_slice(&cas.to_be_bytes());
    }
}
