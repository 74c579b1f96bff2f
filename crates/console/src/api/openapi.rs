//! The document that says what the API takes and answers, made from its types; what is served is
//! what is committed, and a test holds the two together.

/// The document as it is committed: a link to it, so that the package of this crate holds it.
pub(super) const DOCUMENT: &str = include_str!("openapi.json");

#[cfg(all(test, feature = "schema"))]
mod tests {
    use schemars::generate::SchemaSettings;
    use schemars::{JsonSchema, SchemaGenerator};
    use serde_json::{Map, Value, json};

    use crate::api::doc::*;
    use crate::api::figures::{SeriesDoc, TickDoc, TimelineDoc};
    use crate::api::reports::MatrixDoc;

    type SchemaOf = fn(&mut SchemaGenerator) -> Value;

    fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
        generator.subschema_for::<T>().to_value()
    }

    /// What an answer holds.
    enum Answer {
        /// A document of ours.
        Json(u16, SchemaOf),
        /// A document that another file describes, or something that is not JSON.
        Other(&'static str, &'static str),
        /// Nothing.
        Empty,
    }

    struct Route {
        path: &'static str,
        method: &'static str,
        about: &'static str,
        query: &'static [&'static str],
        body: Option<SchemaOf>,
        answer: Answer,
    }

    fn get(path: &'static str, about: &'static str, answer: Answer) -> Route {
        Route { path, method: "get", about, query: &[], body: None, answer }
    }

    fn post(
        path: &'static str,
        about: &'static str,
        body: Option<SchemaOf>,
        answer: Answer,
    ) -> Route {
        Route { path, method: "post", about, query: &[], body, answer }
    }

    impl Route {
        fn with(self, query: &'static [&'static str]) -> Self {
            Self { query, ..self }
        }
    }

    fn of_runs() -> Vec<Route> {
        use Answer::{Json, Other};
        vec![
            get("/runs", "Lists runs", Json(200, of::<RunsDoc>))
                .with(&["search", "state", "kind", "sort", "cursor", "limit"]),
            post(
                "/runs",
                "Submits a workload",
                Some(of::<SubmitDoc>),
                Json(201, of::<SubmittedDoc>),
            ),
            get("/runs/{id}", "Shows a run", Json(200, of::<RunFullDoc>)),
            post("/runs/{id}/cancel", "Cancels a run", None, Json(200, of::<RunDoc>)),
            post("/runs/{id}/resubmit", "Repeats a run", None, Json(201, of::<SubmittedDoc>)),
            post(
                "/runs/{id}/move",
                "Moves a waiting run",
                Some(of::<MoveDoc>),
                Json(200, of::<ActiveDoc>),
            ),
            get("/runs/{id}/workload", "Shows its workload", Json(200, of::<WorkloadDoc>)),
            get("/runs/{id}/log", "Shows its log", Json(200, of::<LogDoc>))
                .with(&["after", "limit"]),
            get("/runs/{id}/series", "Shows its figures over time", Json(200, of::<SeriesDoc>))
                .with(&["stage", "points"]),
            get(
                "/runs/{id}/events",
                "Streams what happens to it: events run, tick (the schema TickDoc), log, alive, \
                 reset and end",
                Other("text/event-stream", "server-sent events"),
            )
            .with(&["after"]),
            get("/runs/{id}/timeline", "Shows its seconds", Json(200, of::<TimelineDoc>))
                .with(&["stage", "cursor", "limit"]),
            get(
                "/runs/{id}/timeline.csv",
                "Its seconds as COSBench's table",
                Other("text/csv", "a table"),
            )
            .with(&["stage"]),
            get(
                "/runs/{id}/report.json",
                "Its report",
                Other("application/json", "docs/formats/report.schema.json"),
            ),
            get("/runs/{id}/report.html", "Its report as a page", Other("text/html", "a page")),
            get(
                "/runs/{id}/everything.tar",
                "All of its files",
                Other("application/x-tar", "an archive"),
            ),
            get(
                "/runs/{id}/files/{name}",
                "One of its files",
                Other("application/octet-stream", "a file"),
            ),
        ]
    }

    fn routes() -> Vec<Route> {
        use Answer::{Empty, Json, Other};
        let mut all = vec![
            get("/session", "Tells who asks", Json(200, of::<SessionDoc>)),
            post("/session", "Signs in", Some(of::<SignInDoc>), Json(200, of::<SessionDoc>)),
            Route {
                path: "/session",
                method: "delete",
                about: "Signs out",
                query: &[],
                body: None,
                answer: Empty,
            },
            get("/overview", "Shows the live state", Json(200, of::<OverviewDoc>)),
            get("/agents", "Shows the agents", Json(200, of::<AgentsDoc>)),
            post("/check", "Judges a workload", Some(of::<CheckDoc>), Json(200, of::<CheckedDoc>)),
            get(
                "/compare",
                "Compares runs",
                Other("application/json", "docs/formats/compare.schema.json"),
            )
            .with(&["before", "after"]),
            get("/matrix", "Shows final figures of runs", Json(200, of::<MatrixDoc>))
                .with(&["runs", "ops"]),
            get("/matrix.csv", "The same as a table", Other("text/csv", "a table"))
                .with(&["runs", "ops"]),
            get("/openapi.json", "This document", Other("application/json", "OpenAPI")),
        ];
        all.extend(of_runs());
        all
    }

    fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
        let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{'));
        let parameter = |(name, place): (&str, &str)| {
            json!({
                "name": name,
                "in": place,
                "required": place == "path",
                "schema": { "type": "string" },
            })
        };
        let in_path = in_path.map(|part| (part.trim_end_matches('}'), "path"));
        let in_query = route.query.iter().map(|name| (*name, "query"));
        let parameters: Vec<Value> = in_path.chain(in_query).map(parameter).collect();
        let (status, answer) = match &route.answer {
            Answer::Json(status, schema) => {
                let schema = schema(generator);
                let content = json!({ "application/json": { "schema": schema } });
                (*status, json!({ "description": route.about, "content": content }))
            }
            Answer::Other(kind, what) => {
                (200, json!({ "description": what, "content": { *kind: {} } }))
            }
            Answer::Empty => (204, json!({ "description": "done" })),
        };
        let refused = json!({ "$ref": "#/components/responses/Refused" });
        let mut doc = json!({
            "summary": route.about,
            "responses": { status.to_string(): answer, "default": refused },
        });
        if !parameters.is_empty() {
            doc["parameters"] = parameters.into();
        }
        if let Some(body) = route.body {
            let schema = body(generator);
            let content = json!({ "application/json": { "schema": schema } });
            doc["requestBody"] = json!({ "required": true, "content": content });
        }
        doc
    }

    fn document() -> Value {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        let mut generator = settings.into_generator();
        let mut paths = Map::new();
        for route in routes() {
            let operation = operation(&route, &mut generator);
            let path = paths.entry(route.path).or_insert_with(|| json!({}));
            path[route.method] = operation;
        }
        let refused = of::<ErrorDoc>(&mut generator);
        generator.subschema_for::<TickDoc>();
        let schemas = generator.take_definitions(true);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Plimsoll console",
                "version": "1",
                "description": "The API of `plimsoll console`. Units stand in the names of fields; \
                    instants are milliseconds since 1970; what is not known is null.",
            },
            "servers": [{ "url": "/api/v1" }],
            "security": [{ "basic": [] }, { "session": [] }],
            "paths": paths,
            "components": {
                "securitySchemes": {
                    "basic": { "type": "http", "scheme": "basic" },
                    "session": { "type": "apiKey", "in": "cookie", "name": "plimsoll_session" },
                },
                "responses": {
                    "Refused": {
                        "description": "why it was refused",
                        "content": { "application/json": { "schema": refused } },
                    },
                },
                "schemas": schemas,
            },
        })
    }

    #[test]
    fn the_document_is_that_of_the_types() {
        plimsoll_testkit::check_format("console.openapi.json", &format!("{:#}\n", document()));
    }

    #[test]
    fn each_path_of_the_router_is_in_the_document() {
        let source = include_str!("../api.rs");
        let api = source.split_once("fn api()").unwrap().1.split_once("\n}").unwrap().0;
        let quoted =
            api.split('"').skip(1).step_by(2).map(|path| path.replace("{*name}", "{name}"));
        let mut routed: Vec<String> = quoted.collect();
        let mut documented: Vec<String> =
            routes().iter().map(|route| route.path.to_owned()).collect();
        documented.dedup();
        routed.sort();
        documented.sort();
        documented.dedup();
        assert_eq!(routed, documented);
    }
}
