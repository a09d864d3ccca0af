/**
 * Takes a null for an optional field as no field at all. Models in strict function calling must name every field, and write
 * null where they mean none.
 */
import type { JsonSchema } from '../../service/json-schema.ts';

/** Deeper than any service's input. */
const MAX_DEPTH = 20;

/**
 * The value without the fields that are null, may be left out, and may not be null. All else stays: a required field, one
 * that takes null, the items of lists, and the fields of objects that take any.
 *
 * @param schema of the value
 * @param isOpen whether a field that the schema does not name goes too when it is null
 */
export function withoutNulls(value: unknown, schema: JsonSchema, isOpen = false, depth = 0): unknown {
  if (depth > MAX_DEPTH || typeof value !== 'object' || value === null) return value;
  const forms = formsOf(schema);
  if (Array.isArray(value)) {
    const items = forms.map((form) => form.items).find(isSchema);
    return items === undefined ? value : value.map((each) => withoutNulls(each, items, false, depth + 1));
  }
  const kept: [string, unknown][] = [];
  for (const [name, member] of Object.entries(value)) {
    const naming = forms.filter(({ properties }) => fieldNamed(properties, name).length > 0);
    const fields = naming.flatMap(({ properties }) => fieldNamed(properties, name));
    if (member === null && (fields.length > 0 ? !mustStay(name, naming) : isOpen)) continue;
    const [field = {}, ...others] = fields;
    const all = others.length === 0 ? field : { anyOf: fields };
    kept.push([name, withoutNulls(member, all, false, depth + 1)]);
  }
  // Not by assignment: JSON may carry `__proto__`.
  return Object.fromEntries(kept);
}

/** Whether a null is one that the forms which name the field take, or refuse in words of their own. */
function mustStay(name: string, naming: readonly JsonSchema[]): boolean {
  return naming.some(
    ({ properties, required }) =>
      (Array.isArray(required) && required.includes(name)) || fieldNamed(properties, name).some(takesNull),
  );
}

/** The schema itself and the alternatives that it allows. */
function formsOf(schema: JsonSchema): readonly JsonSchema[] {
  const alternatives = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((each) =>
    Array.isArray(each) ? each.filter(isSchema) : [],
  );
  return [schema, ...alternatives.flatMap((each) => formsOf(each))];
}

function fieldNamed(properties: unknown, name: string): readonly JsonSchema[] {
  if (!isSchema(properties) || !Object.hasOwn(properties, name)) return [];
  const field = properties[name];
  return isSchema(field) ? [field] : [];
}

function takesNull(field: JsonSchema): boolean {
  return formsOf(field).some(
    ({ type, enum: values, const: only }) =>
      [type].flat().includes('null') || only === null || (Array.isArray(values) && values.includes(null)),
  );
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
