@0xbdf87d7bb8304e81;
# Annotations that C++ code generators look at. Other languages read them only to know the
# names that C++ code uses.

$namespace("capnp::annotations");

annotation namespace(file) :Text;
# The C++ namespace of everything that the file declares.

annotation name(enum, enumerant, struct, field, union, group, interface, method, param) :Text;
# Another name for the C++ side, where the schema's own name cannot be used there.

annotation allowCancellation(file, interface, method) :Void;
# Whether a caller that loses interest may stop a method while it runs. On a file or an
# interface it holds for all methods inside.
