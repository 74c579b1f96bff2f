//! What is sent to sign in, and what answers of each kind come to.

use super::*;

fn address(text: &str) -> Address {
    Address::parse(text).unwrap()
}

fn name(text: &str) -> Named {
    Named::Name(text.to_owned())
}

fn user(password: &str) -> Who {
    Who::User { user: name("tester"), password: Secret::from(password.to_owned()) }
}

fn v1() -> SignIn {
    let key = Secret::from("testing".to_owned());
    SignIn::V1 { auth: address("http://h:8080/auth/v1.0"), user: "test:tester".to_owned(), key }
}

fn v2(service: Service) -> SignIn {
    let project = Some(name("test"));
    SignIn::V2 { auth: address("http://k:5000/v2.0"), who: user("pw"), project, service }
}

fn v3(who: Who, auth: &str) -> SignIn {
    SignIn::V3 {
        auth: address(auth),
        who,
        project: Some(name("test")),
        user_domain: name("Default"),
        project_domain: Named::Id("default".to_owned()),
        service: Service { region: Some("two".to_owned()), ..Service::default() },
    }
}

fn asked(sign_in: &SignIn) -> (String, Value) {
    let asked = ask(sign_in).unwrap().unwrap();
    let body = match asked.body.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&asked.body).unwrap(),
    };
    (String::from_utf8(asked.head).unwrap(), body)
}

fn answered(
    sign_in: &SignIn,
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Found, DriverError> {
    let header = |wanted: &str| {
        let found = headers.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| (*value).to_owned())
    };
    let past = [Secret::from("t0ken".to_owned())];
    let (body, past) = (body.as_bytes(), &past);
    read(sign_in, &Answered { status, header: &header, body, past }, true)
}

#[test]
fn version_1_says_user_and_key_in_headers() {
    let (head, body) = asked(&v1());
    let expected = "GET /auth/v1.0 HTTP/1.1\r\nHost: h:8080\r\nX-Auth-User: test:tester\r\n\
                    X-Auth-Key: testing\r\nX-Storage-User: test:tester\r\n\
                    X-Storage-Pass: testing\r\n\r\n";
    assert_eq!((head.as_str(), body), (expected, Value::Null));
    let headers = [("x-auth-token", "AUTH_tk1"), ("x-storage-url", "http://h:8080/v1/AUTH_test")];
    let found = answered(&v1(), 200, &headers, "").unwrap();
    assert_eq!(found.token.expose(), "AUTH_tk1");
    assert_eq!(found.storage, Some(address("http://h:8080/v1/AUTH_test")));
    let error = answered(&v1(), 200, &headers[1..], "").unwrap_err();
    assert_eq!(error.class, ErrorClass::Protocol);
    assert!(error.message.contains("X-Auth-Token"));
}

#[test]
fn what_would_end_a_header_is_refused_and_not_shown() {
    for (user, key) in [("a\r\nX: y", "k"), ("u", "hush\r\nX: y"), ("", "k"), ("u", "")] {
        let auth = address("http://h");
        let key = Secret::from(key.to_owned());
        let error = ask(&SignIn::V1 { auth, user: user.to_owned(), key }).err().unwrap();
        assert!(error.class == ErrorClass::Client && !error.message.contains("hush"));
    }
    let headers = [("x-auth-token", "a b"), ("x-storage-url", "http://h/v1/a")];
    assert_eq!(answered(&v1(), 200, &headers, "").unwrap_err().class, ErrorClass::Protocol);
}

const CATALOG_V2: &str = r#"{"access": {"token": {"id": "tok2", "expires": "2030-01-01T00:00:00Z"},
"serviceCatalog": [{"type": "compute", "name": "nova", "endpoints": []},
{"type": "object-store", "name": "swift service", "endpoints": [
{"region": "one", "publicURL": "http://one/v1/AUTH_x", "internalURL": "http://in.one/v1/AUTH_x"},
{"region": "two", "publicURL": "https://two:8443/swift/v1"}]}]}}"#;

#[test]
fn version_2_of_keystone_finds_the_store_in_its_catalogue() {
    let (head, body) = asked(&v2(Service::default()));
    assert!(head.starts_with("POST /v2.0/tokens HTTP/1.1\r\nHost: k:5000\r\n"), "{head}");
    let credentials = json!({"username": "tester", "password": "pw"});
    let expected = json!({"auth": {"passwordCredentials": credentials, "tenantName": "test"}});
    assert_eq!(body, expected);
    let of = |name: Option<&str>, region: Option<&str>, interface: Option<&str>| {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let service =
            Service { name: text(name), region: text(region), interface: text(interface) };
        let found = answered(&v2(service), 200, &[], CATALOG_V2);
        found.map(|found| (found.token.expose().to_owned(), found.storage.unwrap()))
    };
    let at = |url: &str| Ok(("tok2".to_owned(), address(url)));
    assert_eq!(of(None, None, None), at("http://one/v1/AUTH_x"));
    assert_eq!(of(Some("swift service"), None, None), at("http://one/v1/AUTH_x"));
    assert_eq!(of(None, Some("two"), None), at("https://two:8443/swift/v1"));
    assert_eq!(of(None, None, Some("internal")), at("http://in.one/v1/AUTH_x"));
    let refused = of(Some("swift"), None, None).unwrap_err().message;
    assert!(refused.contains("no service `swift`") && refused.contains("swift service"));
    let refused = of(None, Some("three"), None).unwrap_err().message;
    assert!(refused.contains("no public address") && refused.contains("`three`"), "{refused}");
}

#[test]
fn version_3_of_keystone_names_domains_and_answers_with_a_header() {
    for (auth, path) in [
        ("http://k:5000", "/v3/auth/tokens"),
        ("http://k:5000/v3/", "/v3/auth/tokens"),
        ("http://k:5000/v3/auth/tokens", "/v3/auth/tokens"),
        ("http://k/identity", "/identity/v3/auth/tokens"),
    ] {
        let (head, _) = asked(&v3(user("pw"), auth));
        assert!(head.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{head}");
    }
    let (_, body) = asked(&v3(user("pw"), "http://k"));
    let said = json!({"name": "tester", "domain": {"name": "Default"}, "password": "pw"});
    assert_eq!(body["auth"]["identity"]["password"]["user"], said);
    let scope = json!({"project": {"name": "test", "domain": {"id": "default"}}});
    assert_eq!(body["auth"]["scope"], scope);
    let holder = v3(Who::Holder(Secret::from("t0".to_owned())), "http://k");
    let (_, body) = asked(&holder);
    let token = json!({"methods": ["token"], "token": {"id": "t0"}});
    assert_eq!(body["auth"]["identity"], token);

    let catalog = r#"{"token": {"catalog": [{"type": "object-store", "name": "swift", "endpoints":
        [{"interface": "admin", "region": "two", "url": "http://admin/v1"},
         {"interface": "public", "region_id": "two", "url": "http://s:1/v1/AUTH_y"}]}]}}"#;
    let headers = [("x-subject-token", "tok3")];
    let found = answered(&holder, 201, &headers, catalog).unwrap();
    assert_eq!(found.token.expose(), "tok3");
    assert_eq!(found.storage, Some(address("http://s:1/v1/AUTH_y")));
    assert!(answered(&holder, 201, &[], catalog).unwrap_err().message.contains("X-Subject-Token"));
}

#[test]
fn answers_that_are_none_are_refused_without_being_shown() {
    let service = Service::default;
    for (body, said) in [
        ("", "line 1"),
        ("<html>hush</html>", "line 1"),
        (r#"{"access": {"token": {"id": "hush"}, "serviceCatalog": 7}}"#, "line 1"),
        (r#"{"access": {"token": {"id": "hush"}}}"#, "no service `object-store`"),
        (&CATALOG_V2[..200], "line"),
        (r#"{"access": {"token": {"id": ""}, "serviceCatalog": []}}"#, "no service"),
    ] {
        let error = answered(&v2(service()), 200, &[], body).unwrap_err();
        assert_eq!(error.class, ErrorClass::Protocol, "{body}");
        assert!(error.message.contains(said) && !error.message.contains("hush"), "{error}");
    }
    let refusal = r#"{"error": {"message": "Invalid user / password", "code": 401}}"#;
    let error = answered(&v2(service()), 401, &[], refusal).unwrap_err();
    assert_eq!((error.class, error.status), (ErrorClass::Denied, Some(401)));
    assert_eq!(error.message, "the sign-in was refused: Invalid user / password");
    let refused = |headers: &[(&str, &str)]| answered(&v1(), 403, headers, "<p>hush</p>");
    let error = refused(&[]).unwrap_err();
    assert_eq!(error.message, "the sign-in was refused: the server answered 403", "not Swift's");
    let error = refused(&[("x-trans-id", "tx1")]).unwrap_err();
    assert_eq!(error.message, "the sign-in was refused: hush");
    let echo = r#"{"error": {"message": "bad request: pw, testing"}}"#;
    for (sign_in, said) in [
        (v1(), "the sign-in failed: bad request: pw, *REDACTED*"),
        (v2(service()), "the sign-in failed: bad request: *REDACTED*, testing"),
    ] {
        assert_eq!(answered(&sign_in, 400, &[], echo).unwrap_err().message, said);
    }
    let redirect = [("location", "http://elsewhere/")];
    let error = answered(&v1(), 302, &redirect, "").unwrap_err();
    assert!(error.class == ErrorClass::Client && error.message.contains("`http://elsewhere/`"));
    let redirect = [("location", "http://elsewhere/?key=testing&t0ken")];
    let error = answered(&v1(), 302, &redirect, "").unwrap_err();
    assert!(error.message.contains("`http://elsewhere/?key=*REDACTED*&*REDACTED*`"), "{error}");
    assert_eq!(answered(&v1(), 503, &[], "").unwrap_err().class, ErrorClass::Server);
    let url = [("x-auth-token", "t"), ("x-storage-url", "ftp://h/")];
    assert_eq!(answered(&v1(), 200, &url, "").unwrap_err().class, ErrorClass::Protocol);
}
