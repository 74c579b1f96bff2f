//! Storages and logins.

use super::*;

const READ: &str = "<operation type='read' config='containers=c(1);objects=c(1)'/>";

/// Returns the target of a storage.
#[track_caller]
fn target(elements: &str) -> String {
    part(&lowered(&of_storage(elements, &work(READ))), "/targets")
}

fn s3(config: &str) -> String {
    format!("<storage type='s3' config='{config}'/>")
}

#[test]
fn settings_of_s3() {
    for (config, expected) in [
        ("", r#"{"s3":{"hosts":"s3.amazonaws.com"}}"#),
        ("endpoint=http://h:9000", r#"{"s3":{"hosts":"h:9000"}}"#),
        ("endpoint=h:9000/", r#"{"s3":{"hosts":"h:9000"}}"#),
        ("endpoint=https://h", r#"{"s3":{"hosts":"h","tls":true}}"#),
        ("endpoint=http://h;path_style_access=false", r#"{"s3":{"hosts":"h","lookup":"host"}}"#),
        (
            "endpoint=http://10.1.2.3:80;path_style_access=no",
            r#"{"s3":{"hosts":"10.1.2.3:80","lookup":"path"}}"#,
        ),
        (
            "endpoint=http://[::1]:80;path_style_access=no",
            r#"{"s3":{"hosts":"[::1]:80","lookup":"path"}}"#,
        ),
        ("endpoint=http://h;path_style_access=YES", r#"{"s3":{"hosts":"h","lookup":"path"}}"#),
        ("endpoint=http://h;signer_version=V2", r#"{"s3":{"hosts":"h","signature":"v2"}}"#),
        ("endpoint=http://h;signer_version=v4", r#"{"s3":{"hosts":"h","signature":"v4"}}"#),
        (
            "endpoint=http://h;timeout=45000;region=x",
            r#"{"s3":{"hosts":"h","region":"x","timeout":"45s"}}"#,
        ),
        (
            "endpoint=http://h;proxyhost=p;proxyport=3128",
            r#"{"s3":{"hosts":"h","proxy":"p:3128"}}"#,
        ),
        ("endpoint=http://h;proxyhost=;proxyport=", r#"{"s3":{"hosts":"h"}}"#),
        ("endpoint=http://h;no_verify_ssl=true", r#"{"s3":{"hosts":"h"}}"#),
    ] {
        assert_eq!(target(&s3(config)), expected, "{config}");
    }
    for (config, said) in [
        ("endpoint=ftp://h", "`endpoint`: write http:// or https://"),
        ("endpoint=http://", "`endpoint`: it names no host"),
        ("endpoint=http://a b", "`endpoint`: it names no host"),
        ("endpoint=http://u:p@h", "`endpoint`: an address must hold no user and no password"),
        ("endpoint=http://h/a/b", "`endpoint`: a store is asked at the root of its host"),
        ("path_style_access=maybe", "`path_style_access=maybe`: write true or false"),
        ("timeout=soon", "For input string: \"soon\"\n"),
        ("signer_version=V5", "`signer_version=V5`: write V2 or V4"),
        ("logging=perhaps", "`logging=perhaps`: write true or false"),
    ] {
        let refused = refusal(&of_storage(&s3(config), &work(READ)));
        assert!(refused.contains(said) && !refused.contains("u:p"), "{refused}");
    }
}

#[test]
fn keys_with_equal_signs_are_whole_and_shown_nowhere() {
    let text = of_storage(&s3("secretkey=a=b==; accesskey = k ;endpoint=http://h"), &work(READ));
    let workload = read(text.as_bytes()).unwrap();
    let lowered = lowered(&text);
    let secrets = lowered.secrets.of("s3").unwrap();
    assert_eq!(secrets.secret_key.as_ref().unwrap().expose(), "a=b==");
    assert_eq!(secrets.access_key.as_ref().unwrap().expose(), "k");
    let saved = layout::config_xml(&workload);
    assert!(saved.contains("secretkey=***; accesskey =***;endpoint=http://h"), "{saved}");
    assert!(!format!("{workload:?} {lowered:?} {saved}").contains("a=b"));
    // A secret that is cut in two is not told either.
    let cut = of_storage(&s3("secretkey=abc;defghi;endpoint=http://h"), &work(READ));
    let told = self::lowered(&cut).notes;
    assert!(
        told[0].contains("has no `=` and is ignored") && !told[0].contains("defghi"),
        "{told:?}"
    );
}

#[test]
fn storages_that_do_nothing() {
    assert_eq!(target(""), r#"{"null":{}}"#);
    assert_eq!(target("<storage type='none' config='logging=false'/>"), r#"{"null":{}}"#);
    assert_eq!(
        target("<storage type='mock'/>"),
        r#"{"null":{"delay":"10ms","read_size":"1000B"}}"#
    );
    let mock = "<auth type='mock' config='delay=20'/><storage type='mock' \
        config='size=64000;delay=0;errors=0.1'/>";
    assert_eq!(target(mock), r#"{"null":{"error_rate":"10%","read_size":"64000B"}}"#);
    for errors in ["2", "-1", "x", "NaN"] {
        let said = refusal(&of_storage(
            &format!("<storage type='mock' config='errors={errors}'/>"),
            &work(READ),
        ));
        assert!(said.contains(&format!("`errors={errors}`: write a share of 0 to 1")), "{said}");
    }
}

#[test]
fn storages_that_are_not_spoken() {
    for (kind, said) in [
        ("ecs", "write type=\"s3\" with its accesskey"),
        ("gcs", "HMAC key"),
        ("oss", "write type=\"s3\" with its accesskey, secretkey and endpoint"),
        ("ampli", "AmpliStor is not spoken"),
        ("librados", "RADOS gateway"),
        ("sproxyd", "S3 connector of Scality"),
        ("cdmi", "CDMI is not spoken"),
        ("cdmi_swift", "write type=\"swift\""),
        ("openio", "take its gateway and write type=\"s3\""),
    ] {
        let refused = refusal(&of_storage(&format!("<storage type='{kind}'/>"), &work(READ)));
        assert!(refused.contains(&format!("storage of type `{kind}` is not taken: ")), "{refused}");
        assert!(refused.contains(said), "{refused}");
    }
    let refused = refusal(&of_storage("<storage type='S3'/>", &work(READ)));
    assert!(refused.starts_with("unrecognized storage type: S3\nline 2, column "), "{refused}");
    let refused = refusal(&of_storage("<auth type='ldap'/>", &work(READ)));
    assert!(refused.starts_with("unrecognized auth type: ldap\n"), "{refused}");
}

#[test]
fn logins_of_swift() {
    let of = |storage: &str, auth: &str| {
        format!("<storage type='swift' config='{storage}'/><auth {auth}/>")
    };
    let swauth = "type='swauth' config='username=test:tester;password=pw;auth_url=http://h/a/v1.0'";
    let keystone = |url: &str| {
        format!(
            "type='keystone' config='username=u;password=pw;tenant_name=t;tenant_id=i;\
             auth_url={url};service=swift service;region=r'"
        )
    };
    for (elements, expected) in [
        (
            of("policy=gold;timeout=5000", swauth),
            r#"{"auth":"http://h/a/v1.0","auth_version":"v1","user":"test:tester","policy":"gold",
                "timeout":"5s"}"#,
        ),
        (
            of("", "type='tempauth' config='username=a:b;password=pw'"),
            r#"{"auth":"http://127.0.0.1:8080/auth/v1.0","auth_version":"v1","user":"a:b"}"#,
        ),
        (
            of("", &keystone("http://k:5000/v2.0")),
            r#"{"auth":"http://k:5000/v2.0","auth_version":"v2","user":"u","project":"t",
                "region":"r","service":"swift service"}"#,
        ),
        (
            of("", &keystone("https://k/identity/v3").replace("tenant_name=t;", "")),
            r#"{"auth":"https://k/identity/v3","auth_version":"v3","user":"u","project_id":"i",
                "region":"r","service":"swift service"}"#,
        ),
        (
            of("token=AUTH_pw;storage_url=http://s/v1/AUTH_x", "type='none'"),
            r#"{"auth_version":"none","storage_url":"http://s/v1/AUTH_x"}"#,
        ),
    ] {
        let text = of_storage(&elements, &work(READ));
        check_part(&lowered(&text), "/targets/swift", expected);
        let lowered = lowered(&text);
        let secrets = lowered.secrets.of("swift").unwrap();
        let hidden = secrets.password.as_ref().or(secrets.token.as_ref()).unwrap();
        assert!(hidden.expose().ends_with("pw"), "{elements}");
        let shown = format!("{lowered:?}{}", layout::config_xml(&read(text.as_bytes()).unwrap()));
        assert!(!shown.contains("pw"), "{shown}");
    }
    let chunked = READ.replace("objects=", "chunked=true;objects=");
    let text = of_storage(&of("", swauth), &work(&chunked));
    assert_eq!(part(&lowered(&text), "/targets/swift/chunked"), "true");
    for (elements, said) in [
        (of("", "type='none'"), "Swift needs a login"),
        (of("token=x", "type='none'"), "no such key defined: storage_url\n"),
        (of("", "type='httpauth'"), "login of type `httpauth` is not taken for Swift"),
        (of("", "type='swauth' config='url=http://u:pw@h'"), "`auth_url` must hold no user"),
    ] {
        let refused = refusal(&of_storage(&elements, &work(READ)));
        assert!(refused.contains(said) && !refused.contains("pw"), "{refused}");
    }
}
