// Where the answers come from: the HTTP API, or the same answers laid into the page by `prony report`.

export class SourceFault extends Error {
  constructor({ message, allowed = "", fix = "" }, unreachable = false) {
    super(message);
    this.allowed = allowed;
    this.fix = fix;
    this.unreachable = unreachable;
  }
}

// The one spelling of an address: sorted keys, no empty values. Twin of prony.web.api.address.
export function address(path, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value).sort(([a], [b]) => (a < b ? -1 : 1));
  const text = pairs.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join("&");
  return text ? `${path}?${text}` : path;
}

export function openSource() {
  const embedded = document.getElementById("prony-data");
  return embedded ? embeddedSource(JSON.parse(embedded.textContent)) : httpSource();
}

function embeddedSource(answers) {
  return {
    embedded: true,
    async get(where) {
      if (!(where in answers)) throw new SourceFault({ message: `${where} is not in this report` });
      return answers[where];
    },
    download: (where) => URL.createObjectURL(new Blob([answers[where]], { type: "text/csv" })),
  };
}

function httpSource() {
  return {
    embedded: false,
    async get(where) {
      let answer;
      try {
        answer = await fetch(`.${where}`, { headers: { accept: "application/json" } });
      } catch {
        throw new SourceFault({ message: "" }, true);
      }
      const body = await answer.json().catch(() => null);
      if (answer.ok && body) return body;
      throw new SourceFault(body?.error ?? { message: `${where}: HTTP ${answer.status}` });
    },
    download: (where) => `.${where}`,
  };
}
