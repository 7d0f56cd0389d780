@0xa93fc509624c72d9;
# Schemas as messages: what the compiler tells a code generator, and what a program can hold
# to read messages whose types it learns only at run time.

using Cxx = import "/capnp/c++.capnp";

$Cxx.namespace("capnp::schema");

struct Node {
  # One declaration that has an id. Declarations inside it are nodes of their own and refer to
  # it by scopeId.

  id @0 :UInt64;
  displayName @1 :Text;
  # For people: the file's name, a colon, and the names of the declarations down to this one.
  displayNamePrefixLength @2 :UInt32;
  # How many bytes of displayName come before the declaration's own name.
  scopeId @3 :UInt64;
  # The node around this one; 0 for files and for the structs of parameter lists.
  parameters @32 :List(Parameter);
  # The generic parameters that this declaration itself has.
  isGeneric @33 :Bool;
  # Whether this declaration or one around it has generic parameters.
  nestedNodes @4 :List(NestedNode);
  # The declarations inside, with the names they have here.
  annotations @5 :List(Annotation);
  union {
    file @6 :Void;
    struct :group {
      dataWordCount @7 :UInt16;
      # Size of the data section in words.
      pointerCount @8 :UInt16;
      # Size of the pointer section in pointers.
      preferredListEncoding @9 :ElementSize;
      # Always inlineComposite nowadays.
      isGroup @10 :Bool;
      # Whether this is a group, which lies in the sections of the struct around it.
      discriminantCount @11 :UInt16;
      # How many fields are members of the unnamed union; 0 if there is none.
      discriminantOffset @12 :UInt32;
      # Where the union keeps its discriminant, in units of 16 bits.
      fields @13 :List(Field);
      # In the order of their ordinals; a group stands where its first member would.
    }
    enum :group {
      enumerants @14 :List(Enumerant);
      # By number.
    }
    interface :group {
      methods @15 :List(Method);
      # By number.
      superclasses @31 :List(Superclass);
    }
    const :group {
      type @16 :Type;
      value @17 :Value;
    }
    annotation :group {
      type @18 :Type;
      targetsFile @19 :Bool;
      targetsConst @20 :Bool;
      targetsEnum @21 :Bool;
      targetsEnumerant @22 :Bool;
      targetsStruct @23 :Bool;
      targetsField @24 :Bool;
      targetsUnion @25 :Bool;
      targetsGroup @26 :Bool;
      targetsInterface @27 :Bool;
      targetsMethod @28 :Bool;
      targetsParam @29 :Bool;
      targetsAnnotation @30 :Bool;
    }
  }
  startByte @34 :UInt32;
  # Where the declaration begins in its file; endByte is where it ends.
  endByte @35 :UInt32;

  struct Parameter {
    name @0 :Text;
  }

  struct NestedNode {
    name @0 :Text;
    id @1 :UInt64;
  }

  struct SourceInfo {
    # What only documentation and editors need of a declaration; kept apart from it.

    id @0 :UInt64;
    docComment @1 :Text;
    members @2 :List(Member);
    # In the order of the fields, enumerants or methods of the node.
    startByte @3 :UInt32;
    endByte @4 :UInt32;

    struct Member {
      docComment @0 :Text;
    }
  }
}

struct Field {
  # A member of a struct.

  name @0 :Text;
  codeOrder @1 :UInt16;
  # The position among the members as they are written in the file.
  annotations @2 :List(Annotation);
  discriminantValue @3 :UInt16 = 65535;
  # The discriminant's value when this member of the union is active; noDiscriminant outside
  # unions.
  union {
    slot :group {
      offset @4 :UInt32;
      # In units of the field's own size, from the start of its section.
      type @5 :Type;
      defaultValue @6 :Value;
      hadExplicitDefault @10 :Bool;
      # Whether the declaration has a `=`, be it followed by the usual default.
    }
    group :group {
      # A group or a named union.
      typeId @7 :UInt64;
    }
  }
  ordinal :union {
    # The number after the `@`; groups have none.
    implicit @8 :Void;
    explicit @9 :UInt16;
  }

  const noDiscriminant :UInt16 = 65535;
}

struct Enumerant {
  # A member of an enum. Its value is its index in the list.

  name @0 :Text;
  codeOrder @1 :UInt16;
  annotations @2 :List(Annotation);
}

struct Superclass {
  # An interface that another one extends.

  id @0 :UInt64;
  brand @1 :Brand;
}

struct Method {
  # A method. Its number is its index in the list.

  name @0 :Text;
  codeOrder @1 :UInt16;
  implicitParameters @7 :List(Node.Parameter);
  # Generic parameters that each call may bind anew.
  paramStructType @2 :UInt64;
  # The struct that holds the arguments, made for the purpose if the method has a list of
  # them.
  paramBrand @5 :Brand;
  resultStructType @3 :UInt64;
  resultBrand @6 :Brand;
  annotations @4 :List(Annotation);
}

struct Type {
  # The type of a field, a constant or an annotation.

  union {
    void @0 :Void;
    bool @1 :Void;
    int8 @2 :Void;
    int16 @3 :Void;
    int32 @4 :Void;
    int64 @5 :Void;
    uint8 @6 :Void;
    uint16 @7 :Void;
    uint32 @8 :Void;
    uint64 @9 :Void;
    float32 @10 :Void;
    float64 @11 :Void;
    text @12 :Void;
    data @13 :Void;
    list :group {
      elementType @14 :Type;
    }
    enum :group {
      typeId @15 :UInt64;
      brand @21 :Brand;
    }
    struct :group {
      typeId @16 :UInt64;
      brand @22 :Brand;
    }
    interface :group {
      typeId @17 :UInt64;
      brand @23 :Brand;
    }
    anyPointer :union {
      unconstrained :union {
        # Not a generic parameter, but may be limited to one kind of pointer.
        anyKind @18 :Void;
        struct @25 :Void;
        list @26 :Void;
        capability @27 :Void;
      }
      parameter :group {
        # A generic parameter: that of the node scopeId with that index.
        scopeId @19 :UInt64;
        parameterIndex @20 :UInt16;
      }
      implicitMethodParameter :group {
        # A generic parameter of the method around it.
        parameterIndex @24 :UInt16;
      }
    }
  }
}

struct Brand {
  # What the generic parameters of a declaration, and of those around it, are bound to.

  scopes @0 :List(Scope);
  # The innermost declaration first. A declaration that is left out has nothing bound.

  struct Scope {
    scopeId @0 :UInt64;
    union {
      bind @1 :List(Binding);
      inherit @2 :Void;
      # The same as at the place where the brand is used, which lies inside that declaration.
    }
  }

  struct Binding {
    union {
      unbound @0 :Void;
      type @1 :Type;
    }
  }
}

struct Value {
  # A default, the value of a constant, or that of an annotation. The member matches the type.

  union {
    void @0 :Void;
    bool @1 :Bool;
    int8 @2 :Int8;
    int16 @3 :Int16;
    int32 @4 :Int32;
    int64 @5 :Int64;
    uint8 @6 :UInt8;
    uint16 @7 :UInt16;
    uint32 @8 :UInt32;
    uint64 @9 :UInt64;
    float32 @10 :Float32;
    float64 @11 :Float64;
    text @12 :Text;
    data @13 :Data;
    list @14 :AnyPointer;
    enum @15 :UInt16;
    struct @16 :AnyPointer;
    interface @17 :Void;
    # Always null.
    anyPointer @18 :AnyPointer;
  }
}

struct Annotation {
  # An annotation as applied to something.

  id @0 :UInt64;
  # The node that declares it.
  brand @2 :Brand;
  value @1 :Value;
}

enum ElementSize {
  # How large the elements of a list are; the numbers are those on the wire.

  empty @0;
  bit @1;
  byte @2;
  twoBytes @3;
  fourBytes @4;
  eightBytes @5;
  pointer @6;
  inlineComposite @7;
}

struct CapnpVersion {
  # The version of a compiler.

  major @0 :UInt16;
  minor @1 :UInt8;
  micro @2 :UInt8;
}

struct CodeGeneratorRequest {
  # What a code generator reads from its standard input.

  capnpVersion @2 :CapnpVersion;
  nodes @0 :List(Node);
  # All nodes of the requested files, and what they depend on.
  sourceInfo @3 :List(Node.SourceInfo);
  requestedFiles @1 :List(RequestedFile);
  # The files to generate code for.

  struct RequestedFile {
    id @0 :UInt64;
    filename @1 :Text;
    # Relative to the source root.
    imports @2 :List(Import);
    # The imports whose types the file uses, by the path written in it.
    fileSourceInfo @3 :FileSourceInfo;

    struct Import {
      id @0 :UInt64;
      name @1 :Text;
    }

    struct FileSourceInfo {
      identifiers @0 :List(Identifier);
      # The names in the file's text that were resolved, with what they stand for.

      struct Identifier {
        startByte @0 :UInt32;
        endByte @1 :UInt32;
        union {
          typeId @2 :UInt64;
          member :group {
            parentTypeId @3 :UInt64;
            ordinal @4 :UInt16;
          }
        }
      }
    }
  }
}
