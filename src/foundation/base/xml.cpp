#include "base/xml.hpp"

#include <algorithm>
#include <cstdint>

namespace trainyard {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == ':' || static_cast<unsigned char>(c) >= 0x80;
}

std::string_view without_prefix(std::string_view name) {
  return name.substr(name.rfind(':') + 1);  // npos + 1 is 0
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += char(code);
  } else if (code < 0x800) {
    out += char(0xC0 | code >> 6);
    out += char(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += char(0xE0 | code >> 12);
    out += char(0x80 | (code >> 6 & 0x3F));
    out += char(0x80 | (code & 0x3F));
  } else {
    out += char(0xF0 | code >> 18);
    out += char(0x80 | (code >> 12 & 0x3F));
    out += char(0x80 | (code >> 6 & 0x3F));
    out += char(0x80 | (code & 0x3F));
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<XmlElement> document() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    TRY(between());
    XmlElement root;
    TRY(element(root, 0));
    TRY(between());
    if (at_ != text_.size()) return fault("text after the root element");
    return root;
  }

 private:
  Error fault(std::string_view what) const {
    return invalid(
        "the XML is not well-formed: " + std::string(what) + " at byte " + std::to_string(at_),
        XmlFault::not_well_formed);
  }

  bool eat(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  Result<void> skip_past(std::string_view token) {
    const auto found = text_.find(token, at_);
    if (found == std::string_view::npos) return fault("'" + std::string(token) + "' is missing");
    at_ = found + token.size();
    return ok();
  }

  // Skips declarations, comments and blanks around the root. Rejects document types, which could
  // define entities.
  Result<void> between() {
    while (true) {
      blanks();
      if (eat("<?"))
        TRY(skip_past("?>"));
      else if (eat("<!--"))
        TRY(skip_past("-->"));
      else if (text_.substr(at_).starts_with("<!"))
        return fault("a document type, which is not allowed,");
      else
        return ok();
    }
  }

  Result<std::string_view> name() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (at_ == begin) return fault("a name is missing");
    return text_.substr(begin, at_ - begin);
  }

  // Reads the rest of a start tag. Returns true for an element without content ("/>").
  Result<bool> attributes_then_is_empty(XmlElement& out) {
    std::vector<std::string_view> names;
    while (true) {
      blanks();
      if (eat("/>")) return true;
      if (eat(">")) return false;
      names.push_back(TRY(name()));
      if (names.size() > kXmlAttributesMax) return fault("an element with too many attributes");
      if (std::ranges::count(names, names.back()) > 1) return fault("a repeated attribute");
      std::string text = TRY(attribute_text());
      if (names.back() != "xmlns" && !names.back().starts_with("xmlns:"))
        out.attributes.push_back({std::string(without_prefix(names.back())), std::move(text)});
    }
  }

  // Reads an attribute from its '=' on.
  Result<std::string> attribute_text() {
    blanks();
    if (!eat("=")) return fault("'=' is missing after an attribute");
    blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '"' && quote != '\'') return fault("an attribute's value without quotes");
    ++at_;
    std::string text;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '<') return fault("'<' in an attribute's value");
      if (text_[at_] == '&')
        TRY(reference(text));
      else
        text += text_[at_++];
    }
    if (!eat(std::string_view(&quote, 1))) return fault("an attribute's value is not closed");
    return text;
  }

  Result<void> element(XmlElement& out, int depth) {
    if (depth > kXmlDepthMax) return fault("nested too deep");
    if (++elements_ > kXmlElementsMax) return fault("too many elements");
    if (!eat("<")) return fault("'<' is missing");
    const std::string_view full_name = TRY(name());
    out.name = without_prefix(full_name);
    if (TRY(attributes_then_is_empty(out))) return ok();
    while (true) {
      if (at_ >= text_.size()) return fault("an element is not closed");
      if (eat("</")) {
        if (!eat(full_name)) return fault("the end tag of another element");
        blanks();
        if (!eat(">")) return fault("'>' is missing");
        return ok();
      }
      if (eat("<!--")) {
        TRY(skip_past("-->"));
      } else if (eat("<![CDATA[")) {
        const size_t begin = at_;
        TRY(skip_past("]]>"));
        out.text.append(text_.substr(begin, at_ - 3 - begin));
      } else if (eat("<?")) {
        TRY(skip_past("?>"));
      } else if (text_[at_] == '<') {
        TRY(element(out.children.emplace_back(), depth + 1));
      } else if (text_[at_] == '&') {
        TRY(reference(out.text));
      } else {
        const size_t end = std::min(text_.find_first_of("<&", at_), text_.size());
        out.text.append(text_.substr(at_, end - at_));
        at_ = end;
      }
    }
  }

  Result<void> reference(std::string& out) {
    ++at_;
    const auto end = text_.find(';', at_);
    if (end == std::string_view::npos || end - at_ > 10) return fault("an '&' without its ';'");
    const std::string_view what = text_.substr(at_, end - at_);
    if (what == "lt")
      out += '<';
    else if (what == "gt")
      out += '>';
    else if (what == "amp")
      out += '&';
    else if (what == "quot")
      out += '"';
    else if (what == "apos")
      out += '\'';
    else if (what.starts_with('#'))
      TRY(character(what.substr(1), out));
    else
      return fault("an unknown entity");
    at_ = end + 1;
    return ok();
  }

  Result<void> character(std::string_view digits, std::string& out) {
    const uint32_t base = digits.starts_with('x') ? 16 : 10;
    if (base == 16) digits.remove_prefix(1);
    uint32_t code = 0;
    if (digits.empty()) return fault("a character reference without digits");
    for (const char c : digits) {
      uint32_t digit = 99;
      if (c >= '0' && c <= '9')
        digit = uint32_t(c - '0');
      else if (c >= 'a' && c <= 'f')
        digit = uint32_t(c - 'a' + 10);
      else if (c >= 'A' && c <= 'F')
        digit = uint32_t(c - 'A' + 10);
      if (digit >= base) return fault("a character reference with an invalid digit");
      code = code * base + digit;
      if (code > 0x10FFFF) return fault("a character reference beyond Unicode");
    }
    if (code == 0 || (code >= 0xD800 && code <= 0xDFFF))
      return fault("a character reference to an invalid character");
    append_utf8(out, code);
    return ok();
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t elements_ = 0;
};

}  // namespace

const XmlElement* XmlElement::child(std::string_view wanted) const {
  const auto found = std::find_if(children.begin(), children.end(),
                                  [&](const auto& one) { return one.name == wanted; });
  return found == children.end() ? nullptr : &*found;
}

const XmlAttribute* XmlElement::attribute(std::string_view wanted) const {
  const auto found = std::ranges::find(attributes, wanted, &XmlAttribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

std::string XmlElement::text_of(std::string_view child_name) const {
  const XmlElement* const found = child(child_name);
  return found ? found->text : std::string();
}

Result<XmlElement> parse_xml(std::string_view text) { return Parser(text).document(); }

std::string xml_text(std::string_view text) {
  std::string out;
  append_xml_text(out, text);
  return out;
}

void append_xml_text(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\r':
        out += "&#13;";
        break;
      default:
        // XML 1.0 allows no other control characters, not even as references.
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
          out += "\xEF\xBF\xBD";
        else
          out += c;
    }
  }
}

}  // namespace trainyard
