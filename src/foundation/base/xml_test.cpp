#include "base/xml.hpp"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

std::string shown(const XmlElement& element) {
  std::string out = element.name + "(" + element.text;
  for (const auto& child : element.children) out += " " + shown(child);
  return out + ")";
}

TEST(Xml, ParsesDocuments) {
  const std::pair<std::string, std::string> table[] = {
      {"<a/>", "a()"},
      {"<a></a>", "a()"},
      {"\xEF\xBB\xBF<?xml version='1.0'?>\n<!-- c --> <a b='>' c = \"'\" xmlns:x=\"u\"> t </a > "
       "<!--d-->",
       "a( t )"},
      {"<x:a><x:b>1</x:b><b/>2</x:a>", "a(2 b(1) b())"},
      {"<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x42;&#xe9;&#x20AC;&#x1F600;</a>",
       "a(<>&\"'AB\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80)"},
      {"<a>x<![CDATA[<&]]>y<!-- z --><?p q?></a>", "a(x<&y)"},
  };
  for (const auto& [text, wanted] : table) {
    const auto read = parse_xml(text);
    ASSERT_TRUE(read) << text << ": " << read.error().message;
    EXPECT_EQ(shown(*read), wanted);
  }
}

TEST(Xml, SkipsNamespaceDeclarations) {
  const auto read = parse_xml(
      "<a xmlns='u' xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type = 'Group' "
      "b=\"&lt;'&#65;>\" />");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->attributes.size(), 2u);
  EXPECT_EQ(read->attribute("type")->text, "Group");
  EXPECT_EQ(read->attribute("b")->text, "<'A>");
  EXPECT_EQ(read->attribute("xsi"), nullptr);
}

TEST(Xml, RejectsMalformedDocuments) {
  for (const std::string text : {"",
                                 "a",
                                 "<",
                                 "<a",
                                 "<a>",
                                 "<a></b>",
                                 "<a><b></a>",
                                 "<a/><b/>",
                                 "<a b></a>",
                                 "<a b=c/>",
                                 "<a b='c/>",
                                 "<a b='<'/>",
                                 "<a b='&nope;'/>",
                                 "<a b='1' b='2'/>",
                                 "<a>&nope;</a>",
                                 "<a>&</a>",
                                 "<a>&#;</a>",
                                 "<a>&#xZ;</a>",
                                 "<a>&#0;</a>",
                                 "<a>&#xD800;</a>",
                                 "<a>&#x110000;</a>",
                                 "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
                                 "<?xml",
                                 "<!-- a",
                                 "<a><![CDATA[x</a>",
                                 "<a></a",
                                 "<a></ a>",
                                 "< a/>",
                                 "<a x=\"1\"",
                                 "<a><!-- </a>"})
    EXPECT_FALSE(parse_xml(text)) << text;
}

TEST(Xml, EnforcesLimits) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_FALSE(parse_xml(deep));
  std::string many = "<a>";
  for (size_t i = 0; i < kXmlElementsMax; ++i) many += "<b/>";
  EXPECT_FALSE(parse_xml(many + "</a>"));
  std::string attributes;
  for (size_t i = 0; i < kXmlAttributesMax; ++i) attributes += " a" + std::to_string(i) + "=''";
  EXPECT_TRUE(parse_xml("<a" + attributes + "/>"));
  EXPECT_FALSE(parse_xml("<a" + attributes + " b=''/>"));
}

TEST(Xml, FindsChildrenByName) {
  const auto read = parse_xml("<a><b>1</b><c/><b>2</b></a>");
  EXPECT_EQ(read->child("b")->text, "1");
  EXPECT_EQ(read->child("d"), nullptr);
  EXPECT_EQ(read->text_of("b") + read->text_of("c") + read->text_of("d"), "1");
}

TEST(Xml, WritesAndReadsBack) {
  EXPECT_EQ(parse_xml("<a>" + xml_text("<&>\"'\n\r\x01 \xc3\xbc") + "</a>")->text,
            "<&>\"'\n\r\xef\xbf\xbd \xc3\xbc");
}

}  // namespace
}  // namespace trainyard
