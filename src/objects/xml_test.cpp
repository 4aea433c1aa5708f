#include "objects/xml.hpp"

#include <gtest/gtest.h>

namespace trainyard::objects {
namespace {

std::string shown(const XmlNode& node) {
  std::string text = node.name + "(" + node.text;
  for (const auto& child : node.children) text += " " + shown(child);
  return text + ")";
}
std::string parsed(std::string_view document) {
  const auto result = parse_xml(document);
  return result ? shown(*result) : std::string(to_string(result.error().kind));
}

TEST(Xml, ReadsWhatS3Answers) {
  EXPECT_EQ(parsed("<?xml version=\"1.0\"?>\n<a xmlns=\"http://x/>\"><b>1</b><b/><s3:c "
                   "d='/'>x&amp;&#65;&#x20AC;</s3:c></a>\n"),
            "a( b(1) b() c(x&A\xe2\x82\xac))");
  EXPECT_EQ(parsed("<!-- c --><a><!-- d --><![CDATA[<&>]]></a>"), "a(<&>)");
}

TEST(Xml, RefusesWhatIsNone) {
  for (const char* document :
       {"", "text", "<a>", "<a></b>", "<a", "<a><b></a></b>", "<a>&nope;</a>", "<a>&#xd800;</a>",
        "<a>&#1114112;</a>", "<a>&amp</a>", "<a/>rest", "<!DOCTYPE a><a/>", "<a b='></a>", "< a/>",
        "<a><![CDATA[x</a>", "<a><!-- </a>", "<?xml"})
    EXPECT_EQ(parsed(document), "invalid") << document;
}

TEST(Xml, HasLimits) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_EQ(parsed(deep), "exhausted");
  std::string many = "<a>";
  for (size_t i = 0; i < kXmlNodesMax; ++i) many += "<b/>";
  EXPECT_EQ(parsed(many + "</a>"), "exhausted");
}

TEST(Xml, EscapesAndReadsBack) {
  const std::string text = "<&>\"'\n\x01 \xc3\xbc";
  EXPECT_EQ(parse_xml("<a>" + escape_xml(text) + "</a>")->text, text);
}

}  // namespace
}  // namespace trainyard::objects
