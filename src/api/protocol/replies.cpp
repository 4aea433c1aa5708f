#include "protocol/replies.hpp"

#include "base/text.hpp"
#include "protocol/json.hpp"
#include "protocol/query.hpp"
#include "protocol/rest_xml.hpp"
#include "protocol/route.hpp"
#include "protocol/xml.hpp"

namespace trainyard::api {
namespace {

std::string json_type(const shapes::Service* service) {
  if (service && uses_rest_json(*service)) return "application/json";
  return "application/x-amz-json-" +
         std::string(service && !service->json_version.empty() ? service->json_version : "1.1");
}

net::Response made(int status, std::string_view request_id, std::string content_type) {
  net::Response response;
  response.status = status;
  response.headers.add("x-amzn-requestid", std::string(request_id));
  if (!content_type.empty()) response.headers.add("Content-Type", std::move(content_type));
  return response;
}

net::Response made_s3(int status, std::string_view request_id, std::string content_type) {
  net::Response response = made(status, request_id, std::move(content_type));
  response.headers.add("x-amz-request-id", std::string(request_id));
  response.headers.add("x-amz-id-2", to_base64(request_id));
  return response;
}

}  // namespace

net::Response json_reply(const shapes::OperationShape& operation, const void* output,
                         std::string_view request_id) {
  net::Response response = made(operation.status, request_id, json_type(operation.service));
  // An operation without output returns an empty body in JSON 1.1, otherwise an empty object.
  if (operation.output)
    write_json(*operation.output, output, response.body);
  else if (operation.service->json_version != "1.1")
    response.body = "{}";
  return response;
}

net::Response query_reply(const shapes::OperationShape& operation, const void* output,
                          std::string_view request_id) {
  net::Response response = made(operation.status, request_id, "text/xml");
  response.body = write_query(operation, output, request_id);
  return response;
}

S3Reply s3_reply(const shapes::OperationShape& operation, const void* output,
                 std::string_view request_id) {
  S3Reply reply;
  if (!operation.output) {
    reply.response = made_s3(operation.status, request_id, "");
    return reply;
  }
  RestReply rest = write_rest(*operation.service, *operation.output, output);
  reply.response = made_s3(operation.status, request_id, rest.content_type);
  for (auto& [name, value] : rest.headers) {
    if (equals_ignoring_case(name, "Content-Length")) {
      if (const auto length = parse_int(value))
        reply.content_length = static_cast<uint64_t>(*length);
    } else {
      reply.response.headers.add(std::move(name), std::move(value));
    }
  }
  reply.response.body = std::move(rest.body);
  return reply;
}

net::Headers s3_document_headers(std::string_view request_id) {
  return made_s3(200, request_id, "application/xml").headers;
}

net::Response json_failure(const shapes::Service* service, const Failure& failure,
                           std::string_view request_id) {
  net::Response response = made(failure.status, request_id, json_type(service));
  response.headers.add("x-amzn-errortype", failure.code);
  if (service && service->query_compatible)
    response.headers.add("x-amzn-query-error",
                         failure.code + (failure.status < 500 ? ";Sender" : ";Receiver"));
  // Services and clients differ in the name of this member, so both are written.
  response.body = "{\"__type\":";
  append_json_string(response.body, failure.code);
  response.body += ",\"message\":";
  append_json_string(response.body, failure.message);
  response.body += ",\"Message\":";
  append_json_string(response.body, failure.message);
  if (!failure.json_members.empty()) response.body.append(",").append(failure.json_members);
  response.body += '}';
  return response;
}

namespace {

std::string ec2_failure_text(const Failure& failure, std::string_view request_id) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>";
  append_xml_text(out, failure.code);
  out += "</Code><Message>";
  append_xml_text(out, to_utf8(failure.message));
  return out.append("</Message></Error></Errors><RequestID>")
      .append(request_id)
      .append("</RequestID></Response>\n");
}

}  // namespace

net::Response query_failure(const shapes::Service* service, const Failure& failure,
                            std::string_view request_id) {
  net::Response response = made(failure.status, request_id, "text/xml");
  std::string& out = response.body;
  if (service && service->ec2_query) {
    out = ec2_failure_text(failure, request_id);
    return response;
  }
  out = "<ErrorResponse";
  if (service && !service->xml_namespace.empty())
    out.append(" xmlns=\"").append(service->xml_namespace).append("\"");
  out.append(">\n<Error><Type>")
      .append(failure.status < 500 ? "Sender" : "Receiver")
      .append("</Type><Code>");
  append_xml_text(out, failure.code);
  out += "</Code><Message>";
  append_xml_text(out, to_utf8(failure.message));
  out.append("</Message></Error>\n<RequestId>")
      .append(request_id)
      .append("</RequestId>\n</ErrorResponse>\n");
  return response;
}

net::Response s3_failure_reply(const net::RequestHead&, const Failure& failure,
                               std::string_view request_id) {
  if (failure.head_only) {
    net::Response response = made_s3(failure.status, request_id, "");
    for (const auto& [name, value] : failure.details) response.headers.add(name, value);
    return response;
  }
  net::Response response = made_s3(failure.status, request_id, "application/xml");
  std::string& out = response.body;
  out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>";
  append_xml_text(out, failure.code);
  out += "</Code><Message>";
  append_xml_text(out, to_utf8(failure.message));
  out += "</Message>";
  if (!failure.resource.empty()) {
    // The element's name depends on the error.
    const std::string_view name = failure.code == "NoSuchKey"            ? "Key"
                                  : failure.code == "NoSuchUpload"       ? "UploadId"
                                  : failure.code == "PreconditionFailed" ? "Condition"
                                  : failure.code == "InvalidAccessKeyId" ? "AWSAccessKeyId"
                                                                         : "BucketName";
    out.append("<").append(name).append(">");
    append_xml_text(out, to_utf8(failure.resource));
    out.append("</").append(name).append(">");
  }
  for (const auto& [name, value] : failure.details) {
    out.append("<").append(name).append(">");
    append_xml_text(out, to_utf8(value));
    out.append("</").append(name).append(">");
  }
  if (!failure.headers_not_signed.empty()) {
    out += "<HeadersNotSigned>";
    append_xml_text(out, to_utf8(failure.headers_not_signed));
    out += "</HeadersNotSigned>";
  }
  out.append("<RequestId>")
      .append(request_id)
      .append("</RequestId><HostId>")
      .append(to_base64(request_id))
      .append("</HostId></Error>");
  return response;
}

}  // namespace trainyard::api
