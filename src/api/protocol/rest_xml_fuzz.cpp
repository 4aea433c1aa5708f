// Routes arbitrary text as an S3 or Batch request: a line "METHOD TARGET", headers, an empty line,
// the body. Reads it into the operation's shape. Reads the body as an S3 document, and writes it
// again.
// decoder: src/api/protocol/rest_xml.cpp src/api/protocol/xml.cpp src/api/protocol/route.cpp
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "protocol/route.hpp"
#include "protocol/xml.hpp"
#include "shapes/batch.hpp"
#include "shapes/cloudwatch.hpp"
#include "shapes/s3.hpp"
#include "shapes/sagemaker.hpp"

using namespace trainyard;
using namespace trainyard::api;

namespace {

template <class Operation>
bool read_as(const shapes::OperationShape& found, const RestRequest& request) {
  if (&found != &Operation::shape() || !found.input) return false;
  typename Operation::Input input;
  (void)read_rest(*found.input, request, &input);
  return true;
}

template <class Operation>
void write_back(const XmlElement& root) {
  typename Operation::Output output;
  const shapes::Shape& shape = *Operation::shape().output;
  if (!read_xml_members(shape, root, &output)) return;
  const RestReply reply = write_rest(shapes::s3::kService, shape, &output);
  if (!reply.content_type.empty()) CHECK(bool(parse_xml(reply.body)), "the reply is valid XML");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = [&] {
    const auto end = text.find('\n');
    const std::string_view out = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    return out;
  };
  net::RequestHead head;
  const std::string_view first = line();
  const auto blank = first.find(' ');
  head.method = first.substr(0, blank);
  head.target = blank == std::string_view::npos ? "/" : first.substr(blank + 1);
  for (int i = 0; i < 50; ++i) {
    const std::string_view field = line();
    const auto colon = field.find(':');
    if (colon == std::string_view::npos) break;
    head.headers.add(std::string(field.substr(0, colon)), std::string(field.substr(colon + 1)));
  }
  static constexpr std::array<const shapes::Service*, 4> kServices{
      &shapes::sagemaker::kService, &shapes::cloudwatch::kService, &shapes::batch::kService,
      &shapes::s3::kService};
  const Route found_route = route(kServices, head);
  if (found_route.operation && found_route.protocol == Protocol::rest_json) {
    const auto labels = read_labels(*found_route.operation, head);
    const auto query = read_query_parameters(head.query());
    if (labels && query)
      (void)read_as<shapes::batch::UntagResource>(*found_route.operation,
                                                  {*labels, *query, head.headers.fields(), ""});
  }
  auto address = read_s3_address(head);
  std::string missing;
  if (address) {
    if (const auto* found = find_s3_operation(shapes::s3::kService, head, *address, missing)) {
      RestRequest request{{{"Bucket", address->bucket}, {"Key", address->key}},
                          address->query,
                          head.headers.fields(),
                          text};
      request.known_elements_only = found->name.starts_with("PutBucket");
      namespace s3 = shapes::s3;
      (void)(read_as<s3::CreateBucket>(*found, request) ||
             read_as<s3::GetObject>(*found, request) || read_as<s3::PutObject>(*found, request) ||
             read_as<s3::DeleteObjects>(*found, request) ||
             read_as<s3::ListObjectsV2>(*found, request) ||
             read_as<s3::UploadPart>(*found, request) ||
             read_as<s3::CompleteMultipartUpload>(*found, request) ||
             read_as<s3::ListParts>(*found, request) ||
             read_as<s3::PutBucketCors>(*found, request) ||
             read_as<s3::PutBucketLifecycleConfiguration>(*found, request) ||
             read_as<s3::PutBucketNotificationConfiguration>(*found, request) ||
             read_as<s3::PutBucketEncryption>(*found, request) ||
             read_as<s3::PutBucketLogging>(*found, request) ||
             read_as<s3::PutBucketWebsite>(*found, request));
    }
  }
  if (const auto root = parse_xml(text)) {
    write_back<shapes::s3::ListObjectsV2>(*root);
    write_back<shapes::s3::ListParts>(*root);
    write_back<shapes::s3::DeleteObjects>(*root);
    write_back<shapes::s3::CopyObject>(*root);
    write_back<shapes::s3::GetBucketCors>(*root);
    write_back<shapes::s3::GetBucketLifecycleConfiguration>(*root);
    write_back<shapes::s3::GetBucketNotificationConfiguration>(*root);
    write_back<shapes::s3::GetBucketWebsite>(*root);
    write_back<shapes::cloudwatch::GetMetricStatistics>(*root);
    shapes::s3::GetObjectOutput object;
    object.metadata = std::map<std::string, std::string>{{root->name, root->text}};
    (void)write_rest(shapes::s3::kService, *shapes::s3::GetObject::shape().output, &object);
  }
  return 0;
}
