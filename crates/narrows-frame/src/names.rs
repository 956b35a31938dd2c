//! Names for numbers, for outputs: an event borrows the engine, so the names must be kept separately.

use narrows_core::{Element, Engine, PortId};

/// The current names of a network's ports and elements.
#[derive(Clone, Debug, Default)]
pub struct ElementNames {
    ports: Vec<String>,
    links: Vec<String>,
    rules: Vec<String>,
    routers: Vec<String>,
    switches: Vec<String>,
}

impl ElementNames {
    /// The names in an engine's network. Take them again when links may have been added.
    pub fn of<B>(engine: &Engine<B>) -> Self {
        let named = |elements: &mut dyn Iterator<Item = Element>| {
            elements.map(|element| engine.element_name(element).to_owned()).collect()
        };
        Self {
            ports: engine.ports().map(|port| engine.port_name(port).to_owned()).collect(),
            links: engine.links().map(|link| engine.view(link).name().to_owned()).collect(),
            rules: named(&mut engine.rules().map(Element::Rules)),
            routers: named(&mut engine.routers().map(Element::Router)),
            switches: named(&mut engine.switches().map(Element::Switch)),
        }
    }

    /// The name of a port; a placeholder for a port that never existed.
    pub fn port(&self, port: PortId) -> &str {
        self.ports.get(usize::from(port.index())).map_or("?", String::as_str)
    }

    /// The name of an element.
    pub fn element(&self, element: Element) -> &str {
        let (names, place) = match element {
            Element::Link(link) => (&self.links, link.index()),
            Element::Rules(rules) => (&self.rules, rules.index()),
            Element::Router(router) => (&self.routers, router.index()),
            Element::Switch(switch) => (&self.switches, switch.index()),
        };
        names.get(place as usize).map_or("?", String::as_str)
    }

    /// The names of all links, in order of their numbers.
    pub fn links(&self) -> &[String] {
        &self.links
    }

    /// Adds the names of links that follow the first `after` ones; those that are known already are skipped.
    pub fn add_links(&mut self, after: usize, names: Vec<String>) {
        let known = self.links.len().saturating_sub(after);
        self.links.extend(names.into_iter().skip(known));
    }

    /// The names of all ports, in order of their numbers.
    pub fn ports(&self) -> &[String] {
        &self.ports
    }
}

#[cfg(test)]
mod tests {
    use narrows_core::{LinkConfig, NetworkConfig, PortConfig, Seed, Target, Time};

    use super::*;

    #[test]
    fn links_that_are_added_have_names() {
        let mut config = NetworkConfig::new(Seed(1));
        let end = Target::Port("end".into());
        config.links.push(LinkConfig::new("wire", end.clone()));
        config.ports.push(PortConfig { name: "end".into(), entry: end.clone() });
        let mut engine: Engine<()> = Engine::new(config).unwrap();
        let before = ElementNames::of(&engine);
        assert_eq!(before.ports(), ["end"]);
        // By name it would come first.
        let added = engine.add_link(Time::ZERO, LinkConfig::new("added", end)).unwrap();
        assert_eq!(before.element(Element::Link(added)), "?");
        let names = ElementNames::of(&engine);
        assert_eq!(names.element(Element::Link(added)), "added");
        let mut grown = before;
        // Several may say the same.
        grown.add_links(1, vec!["added".into()]);
        grown.add_links(1, vec!["added".into()]);
        assert_eq!(grown.links(), names.links());
        assert_eq!(names.links, ["wire", "added"]);
    }
}
