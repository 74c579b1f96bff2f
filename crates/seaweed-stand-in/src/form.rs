//! Forms (multipart/form-data, RFC 7578) with one file.

use bytes::Bytes;
use memchr::memmem;

/// A file that came in a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FormFile {
    pub(crate) name: String,
    pub(crate) mime: String,
    pub(crate) content: Bytes,
}

/// Returns the boundary that a content type names, if it is that of a form.
pub(crate) fn boundary_of(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    let is_form = kind.trim().eq_ignore_ascii_case("multipart/form-data");
    let mut parameters = parameters.split(';').filter(|_| is_form);
    parameters.find_map(|each| Some(each.trim().strip_prefix("boundary=")?.trim_matches('"')))
}

/// Returns the first file of a form.
pub(crate) fn first_file(body: &Bytes, boundary: &str) -> Option<FormFile> {
    let delimiter = format!("\r\n--{boundary}");
    // The first delimiter has no end of line before it where nothing precedes it.
    let mut at = match body.starts_with(&delimiter.as_bytes()[2..]) {
        true => delimiter.len() - 2,
        false => memmem::find(body, delimiter.as_bytes())? + delimiter.len(),
    };
    loop {
        let head_at = at + 2;
        if body.get(at..head_at)? != b"\r\n" {
            return None;
        }
        let content_at = head_at + memmem::find(&body[head_at..], b"\r\n\r\n")? + 4;
        let end = content_at + memmem::find(&body[content_at..], delimiter.as_bytes())?;
        let head = str::from_utf8(&body[head_at..content_at]).ok()?;
        if let Some(name) = parameter(field(head, "content-disposition")?, "filename") {
            let name = name.to_owned();
            let mime = field(head, "content-type").unwrap_or_default().to_owned();
            return Some(FormFile { name, mime, content: body.slice(content_at..end) });
        }
        at = end + delimiter.len();
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut named = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
    named.next().map(|(_, value)| value.trim())
}

fn parameter<'a>(value: &'a str, name: &str) -> Option<&'a str> {
    let parts = value.split(';').skip(1).filter_map(|part| part.trim().split_once('='));
    let mut named = parts.filter(|(parameter, _)| *parameter == name);
    named.next().map(|(_, value)| value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_is_found_to_the_byte() {
        let file = |body: &'static [u8]| first_file(&Bytes::from_static(body), "XX");
        let whole = b"--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\".\"\r\n\
                      Content-Type: image/bench\r\n\r\na\r\n--x\r\n\r\n--XX--\r\n";
        let found = file(whole).unwrap();
        assert_eq!((found.name.as_str(), found.mime.as_str()), (".", "image/bench"));
        assert_eq!(&found.content[..], b"a\r\n--x\r\n");
        let second = b"--XX\r\ncontent-disposition: form-data; name=a\r\n\r\nb\r\n--XX\r\n\
                       Content-Disposition: form-data; name=file; filename=f\r\n\r\n\r\n--XX--";
        let found = file(second).unwrap();
        assert_eq!((found.name.as_str(), found.mime.as_str(), found.content.len()), ("f", "", 0));
        for broken in [&b""[..], b"--XX--\r\n", b"--XX\r\nno end", b"--YY\r\n\r\n\r\n--YY--"] {
            assert_eq!(file(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn only_forms_have_a_boundary() {
        assert_eq!(boundary_of("multipart/form-data; boundary=\"a b\""), Some("a b"));
        assert_eq!(boundary_of("multipart/form-data; charset=x; boundary=ab"), Some("ab"));
        assert_eq!(boundary_of("image/bench"), None);
        assert_eq!(boundary_of("text/plain; boundary=x"), None);
    }
}
