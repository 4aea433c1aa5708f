#include "objects/xml.hpp"

#include <charconv>

namespace trainyard::objects {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

void append_utf8(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text += char(code);
  } else if (code < 0x800) {
    text += char(0xc0 | code >> 6);
    text += char(0x80 | (code & 63));
  } else if (code < 0x10000) {
    text += char(0xe0 | code >> 12);
    text += char(0x80 | (code >> 6 & 63));
    text += char(0x80 | (code & 63));
  } else {
    text += char(0xf0 | code >> 18);
    text += char(0x80 | (code >> 12 & 63));
    text += char(0x80 | (code >> 6 & 63));
    text += char(0x80 | (code & 63));
  }
}

class Parser {
 public:
  explicit Parser(std::string_view document) : rest_(document), bytes_(document.size()) {}

  Result<XmlNode> document() {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
    TRY(skip_between());
    if (!rest_.starts_with('<')) return bad("an element was expected");
    XmlNode root = TRY(element(0));
    TRY(skip_between());
    if (!rest_.empty()) return bad("something follows the document");
    return root;
  }

 private:
  Error bad(const char* what) const {
    return invalid("not the XML expected, at byte " + std::to_string(bytes_ - rest_.size()) + ": " + what);
  }

  // Everything up to and with `end`, which is dropped.
  Result<std::string_view> take_until(std::string_view end) {
    const size_t at = rest_.find(end);
    if (at == rest_.npos) return bad("it ends in the middle");
    const std::string_view taken = rest_.substr(0, at);
    rest_.remove_prefix(at + end.size());
    return taken;
  }

  // Blanks, comments, declarations between elements.
  Result<void> skip_between() {
    for (;;) {
      while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
      if (rest_.starts_with("<?")) {
        TRY(take_until("?>"));
      } else if (rest_.starts_with("<!--")) {
        TRY(take_until("-->"));
      } else {
        return ok();
      }
    }
  }

  // Requires: rest_ starts with '<'.
  Result<XmlNode> element(size_t depth) {
    if (depth >= kXmlDepthMax)
      return exhausted("the XML is nested deeper than " + std::to_string(kXmlDepthMax));
    if (++nodes_ > kXmlNodesMax)
      return exhausted("the XML has more than " + std::to_string(kXmlNodesMax) + " elements");
    rest_.remove_prefix(1);
    std::string_view tag = TRY(start_tag());
    const bool closed = tag.ends_with('/');
    if (closed) tag.remove_suffix(1);
    size_t length = 0;
    while (length < tag.size() && !is_space(tag[length])) ++length;
    const std::string_view name = tag.substr(0, length);
    if (name.empty() || name.front() == '!' || name.front() == '/') return bad("a name was expected");
    XmlNode node;
    node.name = name.substr(name.find(':') == name.npos ? 0 : name.find(':') + 1);
    if (closed) return node;
    for (;;) {
      const size_t markup = rest_.find('<');
      if (markup == rest_.npos) return bad("it ends in the middle");
      TRY(append_text(node.text, rest_.substr(0, markup)));
      rest_.remove_prefix(markup);
      if (rest_.starts_with("</")) {
        rest_.remove_prefix(2);
        std::string_view end = TRY(take_until(">"));
        while (!end.empty() && is_space(end.back())) end.remove_suffix(1);
        if (end != name) return bad("another element is closed than the one that is open");
        return node;
      }
      if (rest_.starts_with("<![CDATA[")) {
        rest_.remove_prefix(9);
        node.text += TRY(take_until("]]>"));
      } else if (rest_.starts_with("<!--")) {
        TRY(take_until("-->"));
      } else if (rest_.starts_with("<?")) {
        TRY(take_until("?>"));
      } else {
        node.children.push_back(TRY(element(depth + 1)));
      }
    }
  }

  // Up to the '>' that is not inside a quoted attribute.
  Result<std::string_view> start_tag() {
    char quote = 0;
    for (size_t at = 0; at < rest_.size(); ++at) {
      const char c = rest_[at];
      if (quote) {
        if (c == quote) quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '>') {
        const std::string_view tag = rest_.substr(0, at);
        rest_.remove_prefix(at + 1);
        return tag;
      }
    }
    return bad("it ends inside a tag");
  }

  Result<void> append_text(std::string& text, std::string_view raw) {
    for (;;) {
      const size_t at = raw.find('&');
      text += raw.substr(0, at);
      if (at == raw.npos) return ok();
      raw.remove_prefix(at + 1);
      const size_t end = raw.substr(0, 12).find(';');
      if (end == raw.npos) return bad("an entity without end");
      std::string_view entity = raw.substr(0, end);
      raw.remove_prefix(end + 1);
      if (entity == "amp")
        text += '&';
      else if (entity == "lt")
        text += '<';
      else if (entity == "gt")
        text += '>';
      else if (entity == "quot")
        text += '"';
      else if (entity == "apos")
        text += '\'';
      else {
        if (!entity.starts_with('#')) return bad("an unknown entity");
        entity.remove_prefix(1);
        const int base = entity.starts_with('x') || entity.starts_with('X') ? 16 : 10;
        if (base == 16) entity.remove_prefix(1);
        uint32_t code = 0;
        const auto [last, fault] = std::from_chars(entity.data(), entity.data() + entity.size(), code, base);
        if (fault != std::errc() || last != entity.data() + entity.size() || code > 0x10ffff ||
            (code >= 0xd800 && code <= 0xdfff))
          return bad("a character number that is none");
        append_utf8(text, code);
      }
    }
  }

  std::string_view rest_;
  const size_t bytes_;
  size_t nodes_ = 0;
};

}  // namespace

const XmlNode* XmlNode::child(std::string_view wanted) const {
  for (const auto& one : children)
    if (one.name == wanted) return &one;
  return nullptr;
}

std::string XmlNode::text_of(std::string_view child_name) const {
  const XmlNode* const found = child(child_name);
  return found ? found->text : std::string();
}

Result<XmlNode> parse_xml(std::string_view document) { return Parser(document).document(); }

std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&apos;";
        break;
      default:
        if (uint8_t(c) < 0x20)
          escaped += "&#" + std::to_string(int(c)) + ";";
        else
          escaped += c;
    }
  }
  return escaped;
}

}  // namespace trainyard::objects
