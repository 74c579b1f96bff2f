//! Why a request is not granted, as the API says it.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::doc::{ErrorBody, ErrorDoc};
use crate::console::ConsoleError;
use crate::runner::Problem;
use crate::store::StoreError;

/// Why a request is not granted.
#[derive(Debug)]
pub(crate) struct Refused {
    status: StatusCode,
    code: &'static str,
    pub(super) message: String,
    problems: Vec<Problem>,
}

impl Refused {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), problems: Vec::new() }
    }

    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn csrf(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "csrf", message)
    }

    pub(crate) fn signed_out(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "signed_out", message)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    pub(crate) fn internal() -> Self {
        let message = "something went wrong in the console";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// Returns the answer to a script, which shows it as it is.
    pub(crate) fn in_plain_text(self) -> Response {
        let kind = [(CONTENT_TYPE, "text/plain;charset=UTF-8")];
        (self.status, kind, format!("{}\n", self.message)).into_response()
    }

    /// Returns the sentence for people.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Unknown(number) => Self::not_found(format!("there is no run {number}")),
            StoreError::Waiting => Self::busy(error.to_string()),
            StoreError::State { .. } => {
                Self::new(StatusCode::CONFLICT, "conflict", error.to_string())
            }
            StoreError::Database(source) => {
                let message = format!("{error}: {source}");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
            }
            StoreError::Newer(_) => Self::internal(),
        }
    }
}

impl From<ConsoleError> for Refused {
    fn from(error: ConsoleError) -> Self {
        let message = error.to_string();
        match error {
            ConsoleError::Store(error) => error.into(),
            ConsoleError::Refused(problems) => Self { problems, ..Self::invalid(message) },
            ConsoleError::NoSecrets(_) => Self::new(StatusCode::CONFLICT, "conflict", message),
            ConsoleError::OfAnother(..) => Self::forbidden(message),
            ConsoleError::Keep(source) => {
                let message = format!("{message}: {source}");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
            }
            ConsoleError::State(_) | ConsoleError::Directory(..) | ConsoleError::Taken(_) => {
                Self::internal()
            }
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self { status, code, message, problems } = self;
        (status, Json(ErrorDoc { error: ErrorBody { code, message, problems } })).into_response()
    }
}
