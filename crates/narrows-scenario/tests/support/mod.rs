//! A validator for the part of JSON Schema that the scenarios' schema uses. It fails on a word that it does not know,
//! so that a schema that says more than is checked here is noticed.

use serde_json::Value;

/// What in `value` does not follow the schema.
pub(crate) fn validate(root: &Value, value: &Value) -> Result<(), String> {
    check(root, root, value, "")
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Value::Object(words) = schema else {
        return if schema == &Value::Bool(true) { Ok(()) } else { Err(format!("{at}: nothing is allowed")) };
    };
    for (word, argument) in words {
        let fits = match word.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => true,
            "$ref" => {
                let path =
                    argument.as_str().and_then(|path| path.strip_prefix('#')).expect("a local reference");
                check(root, root.pointer(path).expect("it exists"), value, at)?;
                true
            }
            "type" => match argument {
                Value::String(name) => has_type(value, name),
                names => list(names).iter().any(|name| has_type(value, name.as_str().expect("a type"))),
            },
            "const" => value == argument,
            "enum" => list(argument).contains(value),
            "anyOf" => list(argument).iter().any(|choice| check(root, choice, value, at).is_ok()),
            "oneOf" => {
                list(argument).iter().filter(|choice| check(root, choice, value, at).is_ok()).count() == 1
            }
            "pattern" => value.as_str().is_none_or(|text| {
                regex_lite::Regex::new(argument.as_str().expect("a pattern"))
                    .expect("it is valid")
                    .is_match(text)
            }),
            "minimum" => value.as_f64().is_none_or(|number| number >= argument.as_f64().expect("a number")),
            "maximum" => value.as_f64().is_none_or(|number| number <= argument.as_f64().expect("a number")),
            "minItems" => value
                .as_array()
                .is_none_or(|items| items.len() as u64 >= argument.as_u64().expect("a number")),
            "maxItems" => value
                .as_array()
                .is_none_or(|items| items.len() as u64 <= argument.as_u64().expect("a number")),
            "required" => value.as_object().is_none_or(|object| {
                list(argument).iter().all(|key| object.contains_key(key.as_str().expect("a key")))
            }),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, argument, item, &format!("{at}[{index}]"))?;
                }
                true
            }
            "properties" => {
                for (key, inner) in value.as_object().into_iter().flatten() {
                    if let Some(schema) = argument.get(key) {
                        check(root, schema, inner, &format!("{at}.{key}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                for (key, inner) in value.as_object().into_iter().flatten() {
                    if words.get("properties").is_none_or(|known| known.get(key).is_none()) {
                        check(root, argument, inner, &format!("{at}.{key}"))?;
                    }
                }
                true
            }
            other => panic!("the schema uses `{other}`, which this validator does not know"),
        };
        if !fits {
            return Err(format!("{at}: {value} does not follow {word}: {argument}"));
        }
    }
    Ok(())
}

fn list(argument: &Value) -> &[Value] {
    argument.as_array().expect("a list")
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("no type is called {other}"),
    }
}
